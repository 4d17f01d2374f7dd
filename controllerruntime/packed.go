package controllerruntime

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tributary-go/tributary/store"
)

// Packed keeps the objects of these kinds as packed bytes, in all versions and forms; without an
// object, those of all kinds. like makes their stores, and is Like of package store/packed:
//
//	controllerruntime.NewCacheWith(controllerruntime.Packed(packed.Like, &corev1.Pod{}))
//
// The package documentation says what differs.
func Packed[S packedStore](like func(example object) func(indexes ...store.AnyIndex[object]) S, objects ...client.Object) Option {
	return func(e *extras) {
		e.packed.objects, e.packed.all = append(e.packed.objects, objects...), len(objects) == 0
		e.packed.like = nil
		if like != nil {
			e.packed.like = func(example object) func(...store.AnyIndex[object]) packedStore {
				newStore := like(example)
				return func(indexes ...store.AnyIndex[object]) packedStore { return newStore(indexes...) }
			}
		}
	}
}

// packedStore is a store of objects at rest. It is an interface so that nobody links its code
// without asking.
type packedStore interface {
	Base() *store.Indexer[object]
	LearnNothing()
}

// packed is the option for packed kinds.
type packed struct {
	like    func(example object) func(...store.AnyIndex[object]) packedStore
	objects []client.Object
	all     bool
	kinds   map[schema.GroupVersionKind]bool // of objects
}

// resolve finds the kinds of the objects.
func (p packed) resolve(from sources) (packed, error) {
	if p.like == nil && (p.all || len(p.objects) > 0) {
		return p, fmt.Errorf("Packed: the function is nil: give packed.Like")
	}
	p.kinds = map[schema.GroupVersionKind]bool{}
	for _, obj := range p.objects {
		gvk, err := apiutil.GVKForObject(obj, from.scheme)
		if err != nil {
			return p, fmt.Errorf("Packed: %T: %w", obj, err)
		}
		p.kinds[gvk] = true
	}
	return p, nil
}

// of returns the function that makes the store of a kind; nil if the kind is not packed.
func (p packed) of(k kind, example object) func(...store.AnyIndex[object]) packedStore {
	if p.like == nil || !p.all && !p.kinds[k.GroupVersionKind] {
		return nil
	}
	newStore := p.like(example)
	return func(indexes ...store.AnyIndex[object]) packedStore {
		s := newStore(indexes...)
		if k.Group == "" && k.Kind == "Secret" { // in any form
			s.LearnNothing()
		}
		return s
	}
}
