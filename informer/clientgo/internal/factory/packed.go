package factory

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Packed says which kinds a factory keeps as packed bytes, by what names a kind in it. The zero
// value packs none.
type Packed[K comparable] struct {
	pack func(example clientgo.Object, secrets bool) informer.Option
	all  bool
	of   map[K]bool
}

// PackedStore is a store of package store/packed. It is an interface so that nobody links its code
// without asking.
type PackedStore interface {
	Base() *store.Indexer[clientgo.Object]
	LearnNothing()
}

// PackedBy packs some kinds, or all if none is named, by a function such as packed.Like. It panics
// if the function is nil.
func PackedBy[K comparable, S PackedStore](
	like func(example clientgo.Object) func(indexes ...store.AnyIndex[clientgo.Object]) S, kinds ...K,
) Packed[K] {
	if like == nil {
		panic("clientgo: WithPacked: the function is nil: give packed.Like")
	}
	p := Packed[K]{all: len(kinds) == 0, of: map[K]bool{}}
	for _, kind := range kinds {
		p.of[kind] = true
	}
	p.pack = func(example clientgo.Object, secrets bool) informer.Option {
		newStore := like(example)
		return informer.WithStore(func(indexes ...store.AnyIndex[clientgo.Object]) S {
			s := newStore(indexes...)
			if secrets { // in any form
				s.LearnNothing()
			}
			return s
		})
	}
	return p
}

// Options returns the options of a kind's informer and of its source, or none if the kind is not
// packed. Packed objects share no memory.
func (p Packed[K]) Options(kind K, example clientgo.Object) ([]informer.Option, []listwatch.Option) {
	if p.pack == nil || !p.all && !p.of[kind] {
		return nil, nil
	}
	resource, _ := any(kind).(schema.GroupVersionResource)
	secrets := resource.Group == "" && resource.Resource == "secrets"
	return []informer.Option{p.pack(example, secrets)}, []listwatch.Option{listwatch.WithoutSharing()}
}
