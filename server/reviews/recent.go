package reviews

import "container/list"

// recent keeps the most recently used entries within a number and a size. It is not safe for
// concurrent use.
type recent[V any] struct {
	entries, bytes int // at most
	weigh          func(V) int

	size   int // of all entries, in bytes
	order  list.List
	places map[key]*list.Element
}

type entry[V any] struct {
	key   key
	value V
	size  int
}

// perEntry is an estimate of the memory of an entry beside its value: the key twice, an element of
// the list, a slot of the map.
const perEntry = 256

func newRecent[V any](entries, bytes int, weigh func(V) int) *recent[V] {
	return &recent[V]{entries: max(entries, 1), bytes: bytes, weigh: weigh, places: map[key]*list.Element{}}
}

func (r *recent[V]) get(k key) (value V, ok bool) {
	place, ok := r.places[k]
	if !ok {
		return value, false
	}
	r.order.MoveToFront(place)
	return place.Value.(*entry[V]).value, true
}

// put adds or replaces an entry. An entry larger than all of the room is not kept.
func (r *recent[V]) put(k key, value V) {
	r.remove(k)
	e := &entry[V]{k, value, perEntry + r.weigh(value)}
	if e.size > r.bytes {
		return
	}
	r.places[k] = r.order.PushFront(e)
	r.size += e.size
	for r.order.Len() > r.entries || r.size > r.bytes {
		r.drop(r.order.Back())
	}
}

func (r *recent[V]) remove(k key) {
	if place, ok := r.places[k]; ok {
		r.drop(place)
	}
}

func (r *recent[V]) drop(place *list.Element) {
	e := r.order.Remove(place).(*entry[V])
	delete(r.places, e.key)
	r.size -= e.size
}

func (r *recent[V]) len() int { return r.order.Len() }
