package store

import "iter"

// Store is the target of a reflector's writes. Any type may implement it; the interface is frozen
// and never grows. A store may also be a [Bookmarker], a [Historian], a [Sized] and a
// [Snapshotter]: the reflector finds out by type assertion.
//
// One reflector calls one method at a time. Objects are handed over: the store may keep them, and
// neither side modifies them afterwards. An error means that the store did not take the change; the
// reflector reports it and lists again.
type Store[T Object] interface {
	// Add stores an object that the server reports as new. It may already be there (a replayed
	// event).
	Add(obj T) error
	// Update stores a newer version of an object. It may be absent.
	Update(obj T) error
	// Delete removes an object; obj is its last state, as the server saw it. It may be absent.
	Delete(obj T) error
	// Replace makes items the whole content, all or nothing: an error from items, or of the store's
	// own, leaves the old content. Items arrive while the server is still sending them, so Replace
	// may take long, and they can be ranged over once. If a key comes twice, the last object
	// counts.
	//
	// resourceVersion returns the version of that state. It may be called once items has ended
	// without an error, not before: with a watch list the server names the version last.
	Replace(items iter.Seq2[T, error], resourceVersion func() string) error
}

// Bookmarker is a store that wants to know how far its content is complete while no object changes.
type Bookmarker interface {
	// Bookmark says that the store holds the effects of everything up to resourceVersion.
	Bookmark(resourceVersion string) error
}

// Historian is a store that relates its content to earlier content by their versions. Of the stores
// of this module, unions and watch caches do; those that pass writes on pass this on.
type Historian interface {
	// AnotherHistory says that the list of the [Store.Replace] under way is of another history than
	// the content: the server's data was restored from a backup, or another cluster answers. No
	// version of before says anything about a version of after. It is called in Replace, after the
	// last item and before resourceVersion.
	AnotherHistory()
}

// Sized is a store that bounds its content in bytes, such as a watch cache. The reflector calls its
// methods in place of Add, Update and Delete if the source knows the object's bytes on the wire.
type Sized[T Object] interface {
	// PutSized is Add and Update, with the object's size.
	PutSized(obj T, bytes int) error
	// DeleteSized is Delete, with the object's size.
	DeleteSized(obj T, bytes int) error
}

// Snapshotter has its content as snapshots: [Indexer], informers, watch caches and undelta stores
// do. If the store of a reflector is a Snapshotter, held objects are not decoded again, an object
// that turns undecodable stays in its last good state, and an older state never replaces the
// content of an earlier run. If it also has a Get method like [Indexer.Get], the reflector reads
// single objects through Get.
type Snapshotter[T Object] interface {
	// Snapshot is the content now. It blocks for no longer than one write takes, and any number of
	// goroutines may call it.
	Snapshot() Snapshot[T]
}

// Items is a complete state made of objs, for [Store.Replace].
func Items[T Object](objs ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, obj := range objs {
			if !yield(obj, nil) {
				return
			}
		}
	}
}

// At is a resource version known in advance, for [Store.Replace].
func At(resourceVersion string) func() string {
	return func() string { return resourceVersion }
}
