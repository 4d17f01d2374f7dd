package sources

import "time"

// Optional adds sources that [Sources.Synced] does not wait for beyond wait, counted from the beginning of Run; with zero,
// not at all. Its arguments are what New takes: APIServer, File, HTTP or With.
func Optional(wait time.Duration, sources ...Option) Option {
	return func(s *Sources) {
		s.mark(sources, func(f *feed) { f.optional, f.deadline = true, wait })
	}
}

// Required adds sources that [Sources.Synced] waits for, as it does by default; when one of them has not been read
// deadline after the beginning of Run, its Status has a problem that says so. Zero is no deadline. Its arguments are what
// New takes: APIServer, File, HTTP or With.
func Required(deadline time.Duration, sources ...Option) Option {
	return func(s *Sources) {
		s.mark(sources, func(f *feed) { f.optional, f.deadline = false, deadline })
	}
}

func (s *Sources) mark(options []Option, mark func(*feed)) {
	before := len(s.feeds)
	for _, option := range options {
		option(s)
	}
	for _, f := range s.feeds[before:] {
		mark(f)
	}
}

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
