package sources

// SafeToPrune reports whether Updates has delivered everything that the named source declares. Its
// state is complete and fresh (see [health.Report].StaleAfter), it is not from a checkpoint, no
// state is pending, and no problem hides a pod. Only then may an agent stop a pod because the
// source does not list it: in a partial view, missing pods look deleted. If several sources have
// the name, all must be safe. If no source has it, SafeToPrune is false.
//
// A manifest that was good since Run began, and has turned bad, hides nothing: its pods are kept. A
// file, a document or an item that was never good may declare a pod of an earlier run. So may a
// folder, a URL or an API server that cannot be read. With these SafeToPrune is false.
//
// It is false while a file or a folder has never been there, as its path may be misspelt, although
// Synced does not wait for it. Point to an empty folder to declare that there are no static pods.
// For a source of your own each problem counts, unless the report is Complete. Under [LikeKubelet]
// each problem counts, because bad manifests lose their pods.
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
