package reflector

import (
	"errors"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// losses are the objects of which the cache lacks the newest state, by key, since the newest list.
// Those of which that state could not be decoded or stored are unusable. All objects without a
// readable key are one, but in a list.
type losses struct {
	keys     map[string]bool // true: unusable
	unusable int
}

// maxLosses bounds the keys. Beyond them each loss counts, and may be of any object.
const maxLosses = 10_000

func (l *losses) add(key string, unusable bool) {
	was, known := l.keys[key]
	switch {
	case unusable && !was:
		l.unusable++
	case was && !unusable:
		l.unusable--
	}
	if !known && len(l.keys) == maxLosses {
		return
	}
	if l.keys == nil {
		l.keys = map[string]bool{}
	}
	l.keys[key] = unusable
}

// mended takes in a state of an object that the cache has.
func (l *losses) mended(key string) {
	if l.keys[key] {
		l.unusable--
	}
	delete(l.keys, key)
}

// explain reports whether the object may differ from the server's for that reason.
func (l *losses) explain(key string) bool {
	_, lost := l.keys[key]
	return lost || len(l.keys) == maxLosses
}

// lossOf is the object that an error in place of an event concerns, and whether it cannot be used.
// A deleted object is none that anyone could use.
func lossOf[T store.Object](event listwatch.Event[T], err error) (key string, unusable bool) {
	var d *listwatch.DecodeError
	switch {
	case errors.As(err, &d):
		return d.Object, d.Event != string(watch.Deleted)
	case event.Type == watch.Bookmark:
		return "", false
	}
	return store.KeyOf(event.Object), !errors.Is(err, stream.ErrUnplaced)
}
