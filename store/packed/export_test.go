package packed

import (
	"bytes"
	"sync/atomic"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed/internal/delta"
)

// NewAny makes a store of objects of any type, which fresh makes.
func NewAny(fresh func() store.Object) *Store[store.Object] {
	return newStore(form[store.Object]{new: fresh}, nil)
}

// Learned reports whether the objects are packed by a generation that was learned from samples.
func (s *Store[T]) Learned() bool { return s.keeper.kin.many }

// Generations are those by which the objects are packed.
func (s *Store[T]) Generations() map[*delta.Generation]bool {
	all := map[*delta.Generation]bool{}
	for _, entry := range s.Snapshot().Entries().All() {
		if base := entry.(*cell).base; base != nil && !base.IsTail() {
			all[base.Generation()] = true
		}
	}
	return all
}

// Remembers reports whether a store has learned anything of its objects.
func (s *Store[T]) Remembers() bool {
	for _, entry := range s.Snapshot().Entries().All() {
		if base := entry.(*cell).base; base != nil && !base.IsTail() {
			return true
		}
	}
	return s.keeper.kin.near != nil || len(s.keeper.kin.grown) > 0
}

// ReaderHas reports whether the buffer of the last reader has a text.
func ReaderHas(text []byte) bool {
	r := readers.Get().(*reader)
	defer r.done()
	return bytes.Contains(r.document[:cap(r.document)], text)
}

// CountDecoded counts the objects that are decoded from now on.
func (s *Store[T]) CountDecoded(n *atomic.Int64) {
	fresh := s.keeper.form.new
	s.keeper.form.new = func() T { n.Add(1); return fresh() }
}
