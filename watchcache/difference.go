package watchcache

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/listwatch"
)

// keyWeight is what a lane needs for the key of an object that it has lost a change of.
const keyWeight = 128

// touched are the objects of which a lane has lost changes. A watcher that permits it is told what
// has become of them, in place of a 410.
type touched struct {
	keys map[objectKey]struct{}
	from uint64 // the keys are those of all lost changes from this position on
}

// touch notes that a change is lost. Without room for that, the watchers that have not read the
// change get a 410. The lane's mu is held.
func (l *lane[T]) touch(c *change[T], b *backlog[T]) {
	if l.keep == nil || !l.keep.differences {
		return
	}
	key := c.key()
	if _, ok := l.touched.keys[key]; ok {
		return
	}
	if b.keys.Load() >= b.most/keyWeight {
		l.untouch(c.number+1, b)
		return
	}
	if l.touched.keys == nil {
		l.touched.keys = map[objectKey]struct{}{}
	}
	l.touched.keys[key] = struct{}{}
	b.keys.Add(1)
}

// untouch forgets the objects, which no watcher from a position on has to be told of.
func (l *lane[T]) untouch(from uint64, b *backlog[T]) {
	if l.keep == nil {
		return // which touches none
	}
	b.keys.Add(-int64(len(l.touched.keys)))
	l.touched = touched{from: from}
}

// offerDifference makes what has become of the objects that the watcher has missed a change of the
// next that it is told, between two bookmarks. It is false if that is not known, or if the watcher
// does not permit it.
func (w *Watcher[T]) offerDifference() bool {
	c, l := w.cache, w.lane.Load()
	if !w.keep.differences || l == nil || w.skips {
		return false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	l.mu.Lock()
	known := w.position >= l.touched.from
	keys := map[objectKey]struct{}{}
	maps.Copy(keys, l.touched.keys)
	for _, ch := range l.changes {
		keys[ch.key()] = struct{}{}
	}
	l.mu.Unlock()
	if !known {
		return false
	}
	present, version := c.present(), formatVersion(c.version)
	w.offered = append(w.offered, Delivery[T]{Event: listwatch.Event[T]{
		Type: watch.Bookmark, ResourceVersion: formatVersion(max(w.after, w.reached)), DifferenceBegins: true,
	}})
	for _, key := range slices.SortedFunc(maps.Keys(keys), func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	}) {
		e := listwatch.Event[T]{Type: watch.Deleted, ResourceVersion: version}
		if obj, ok := present.Get(c.resource.Key(key.namespace, key.name)); ok && w.keep.matches(obj) {
			e = listwatch.Event[T]{Type: watch.Added, Object: obj, ResourceVersion: obj.GetResourceVersion()}
		} else {
			e.Object = c.resource.Bookmark(version, false)
			e.Object.SetNamespace(key.namespace)
			e.Object.SetName(key.name)
		}
		w.offered = append(w.offered, Delivery[T]{Event: e})
	}
	w.offered = append(w.offered, Delivery[T]{Event: listwatch.Event[T]{
		Type: watch.Bookmark, ResourceVersion: version, DifferenceEnds: true,
	}})
	w.position, w.reached, w.gap, w.difference = c.window.Next(), c.version, nil, nil
	c.stats.differences.Add(1)
	return true
}

// offeredEvents are the next events of a difference.
func (w *Watcher[T]) offeredEvents() []Delivery[T] {
	events := w.offered[:min(len(w.offered), batchSize)]
	if w.offered = w.offered[len(events):]; len(w.offered) == 0 {
		w.offered = nil
	}
	return events
}

// key is that of the object that has changed.
func (c *change[T]) key() objectKey {
	if pointer.None(c.old) {
		return keyOf(c.now)
	}
	return keyOf(c.old)
}
