package sources

// SafeToPrune reports whether what was read from Updates of the source of that name is all that it declares: it has been
// read whole and lately (see [Report].StaleAfter), not from a checkpoint; nothing waits to be read; and no problem hides a
// pod. Only then may an agent take a pod that it runs, and that the source has not named, for one that nobody wants: a
// partial view looks just like that. Of several sources of one name all must be so; of a name that no source has, it is
// false.
//
// A manifest that was good since Run began and is not any more hides nothing, as its pods are kept.
// A file, a document or an item that was never good may declare a pod of before, and so may
// whatever is behind a folder, a URL or an API server that cannot be read: with these it is false.
// It is false while a file or a folder has never been there, as its path may be misspelt, although
// Synced does not wait for it: point to an empty folder to say that there are no static pods. Of
// sources of your own each problem counts but with [Report].Complete; under [LikeKubelet], where
// bad manifests lose their pods, each does.
func (s *Sources) SafeToPrune(source string) bool {
	found := false
	for _, f := range s.list() {
		if f.name != source {
			continue
		}
		if !f.safeToPrune() {
			return false
		}
		found = true
	}
	return found
}
