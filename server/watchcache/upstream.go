package watchcache

import (
	"context"
	"errors"
	"iter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Upstream is the server that a cache copies, as far as a cache asks it whether the copy is fresh.
// [ServerOf] makes one for an API server; an etcd.Source is one. Methods are called by one
// goroutine each at a time, for all readers together. They must return soon after ctx has ended.
//
// An upstream that is a listwatch.ListerWatcher of the cache's objects, such as an etcd.Source, is
// also asked for lists at exact versions that the cache has forgotten, and for the further pages of
// such lists. It must list in the order of keys, NAMESPACE/NAME, and take kube-apiserver's continue
// tokens without a limit.
type Upstream interface {
	// Newest returns the version of the server's newest write, to whatever collection. It must not
	// come from a cache that may be behind.
	Newest(ctx context.Context) (resourceVersion string, err error)

	// Progress asks the server to prove that no change after since is missing. If the answer is a
	// bookmark in the watch that fills the cache, Progress returns empty versions and does not wait
	// for it. Otherwise it returns until, a version up to which no change comes later than after;
	// after is empty if nothing has changed since.
	Progress(ctx context.Context, since string) (after, until string, err error)
}

// ServerOf asks the API server that lw reads. lw must select the objects that the cache's reflector
// selects; a listwatch of [metav1.PartialObjectMetadata] reads the least. The newest version is
// that of a LIST of one object, at the latest version.
//
// A collection of up to 20,000 objects is proven fresh by a LIST of all: if the copy holds the same
// objects at the same versions, it is complete up to the version of the list. These lists take a
// tenth of the time at most. Progress is a watch of some seconds, which ends with its first
// bookmark: API servers send a bookmark two seconds before the timeout, so that the proof for a
// larger collection without changes takes one to two seconds.
func ServerOf[T store.Object](lw listwatch.ListerWatcher[T]) Upstream { return server[T]{lw} }

type server[T store.Object] struct{ lw listwatch.ListerWatcher[T] }

func (s server[T]) Newest(ctx context.Context) (string, error) {
	list := s.lw.List(ctx, metav1.ListOptions{Limit: 1})
	for _, err := range list.Items {
		if err != nil && !undecodable(err) {
			return "", err
		}
	}
	return list.Meta().ResourceVersion, nil
}

// contents lists the metadata of all objects.
func (s server[T]) contents(ctx context.Context, options metav1.ListOptions) (objects iter.Seq2[metav1.Object, error], resourceVersion func() string) {
	list := s.lw.List(ctx, options)
	objects = func(yield func(metav1.Object, error) bool) {
		for obj, err := range list.Items {
			if !yield(obj, err) {
				return
			}
		}
	}
	return objects, func() string { return list.Meta().ResourceVersion }
}

const (
	// progressDelay is how long a change may be on its way before a watch is spent on a proof.
	progressDelay = 50 * time.Millisecond
	// progressTimeout has an API server send a bookmark after a second: with less it sends none.
	progressTimeout = lastBookmark + time.Second
)

func (s server[T]) Progress(ctx context.Context, since string) (after, until string, err error) {
	if !pace.Sleep(ctx, progressDelay) {
		return "", "", ctx.Err()
	}
	// A server's bookmarks are as new as the server's own cache, which a consistent list moves on.
	if _, err := s.Newest(ctx); err != nil {
		return "", "", err
	}
	seconds := int64(progressTimeout / time.Second)
	for e, err := range s.lw.Watch(ctx, metav1.ListOptions{
		ResourceVersion: since, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	}) {
		switch {
		case err != nil: // an event that cannot be decoded has no version that could be waited for
			return "", "", err
		case e.Type == watch.Bookmark:
			return after, e.ResourceVersion, nil
		}
		after = e.ResourceVersion
	}
	return "", "", ctx.Err()
}

func undecodable(err error) bool {
	var one *listwatch.DecodeError
	return errors.As(err, &one)
}
