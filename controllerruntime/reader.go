package controllerruntime

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/store"
)

func (c *collection) get(key client.ObjectKey, out client.Object, options *client.GetOptions) error {
	if c.root {
		key.Namespace = ""
	}
	config, ok := c.config(key.Namespace)
	if !ok {
		return c.unknownNamespace("get", key.Namespace)
	}
	obj, ok := c.held(store.Key(key.Namespace, key.Name))
	if !ok {
		return c.notFound(key)
	}
	return c.give(obj, key, out, c.asIs(obj, uncopied(config, options.UnsafeDisableDeepCopy)))
}

// asIs reports whether a read returns the object itself and no copy. Objects of packed kinds are
// decoded for the reader alone; others are returned so with UnsafeDisableDeepCopy. With that option
// an object of a Go type does not state its kind, as in controller-runtime.
func (c *collection) asIs(obj object, uncopied bool) bool {
	if c.packed && !(uncopied && c.kind.form == typed) {
		c.stateKind(obj)
	}
	return c.packed || uncopied
}

// held returns an object that is read-only; of a packed kind the caller's own, which no other
// reader has. An informer's Get would keep that one decoded for the next reader.
func (c *collection) held(key string) (object, bool) {
	if c.packed {
		return c.copy.Snapshot().Get(key)
	}
	return c.copy.Get(key)
}

func (s shape) stateKind(obj object) {
	obj.GetObjectKind().SetGroupVersionKind(s.kind.GroupVersionKind)
}

func (s shape) notFound(key client.ObjectKey) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: s.kind.Group, Resource: s.kind.Kind}, key.Name)
}

// give makes *out the object, or a copy of it.
func (s shape) give(obj object, key client.ObjectKey, out client.Object, uncopied bool) error {
	into, held := reflect.ValueOf(out), reflect.ValueOf(obj)
	if into.Type() != held.Type() {
		return fmt.Errorf("controllerruntime: get %s %s: the cache has a %T, and the caller wants a %T", s.kind.Kind, key, obj, out)
	}
	if uncopied {
		into.Elem().Set(held.Elem())
		return nil
	}
	s.copyInto(held, into)
	return nil
}

// copyInto makes *into a copy of *held that states its kind.
func (s shape) copyInto(held, into reflect.Value) {
	s.deep.copyInto(held, into)
	s.stateKind(into.Interface().(object))
}

// unknownNamespace refuses a namespace that the cache does not keep, since an empty answer would be
// wrong.
func (s shape) unknownNamespace(op, namespace string) error {
	return fmt.Errorf("controllerruntime: unable to %s: the cache keeps no %s of namespace %q: add it to the cache's Namespaces",
		op, s.kind.Kind, namespace)
}

// uncopied reports whether a reader gets the cache's own objects. The reader decides, after the
// configuration.
func uncopied(config cache.Config, asked *bool) bool {
	return config.UnsafeDisableDeepCopy != nil && *config.UnsafeDisableDeepCopy || asked != nil && *asked
}

func (c *collection) list(out client.ObjectList, options client.ListOptions) error {
	if _, ok := c.config(options.Namespace); !ok && options.Namespace != metav1.NamespaceAll {
		return c.unknownNamespace("list", options.Namespace)
	}
	now := c.copy.Snapshot()
	selected, err := c.selected(now, options)
	if err != nil {
		return err
	}
	var found []object
	for obj := range selected {
		if options.Limit > 0 && int64(len(found)) == options.Limit {
			break
		}
		found = append(found, obj)
	}
	if err := c.fill(out, found, options.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	out.SetContinue("continue-not-supported") // controller-runtime's text
	out.SetResourceVersion(now.ResourceVersion())
	return nil
}

// selected yields the objects of a namespace that match the selectors. Without a field selector, a
// packed object is decoded only if its labels match.
func (c *collection) selected(now store.Snapshot[object], options client.ListOptions) (iter.Seq[object], error) {
	if options.FieldSelector == nil {
		return now.Select(options.Namespace, options.LabelSelector), nil
	}
	found, err := c.byFields(now, options.Namespace, options.FieldSelector)
	if err != nil || options.LabelSelector == nil {
		return found, err
	}
	return func(yield func(object) bool) {
		for obj := range found {
			if options.LabelSelector.Matches(labels.Set(obj.GetLabels())) && !yield(obj) {
				return
			}
		}
	}, nil
}

// byFields reads the index with the fewest objects, and asks the other indexes' functions.
func (c *collection) byFields(now store.Snapshot[object], namespace string, selector fields.Selector) (iter.Seq[object], error) {
	terms := selector.Requirements()
	if len(terms) == 0 {
		return nil, errInexact
	}
	indexes := make([]fieldIndex, len(terms))
	best := 0
	of := func(i int) fieldValue { return fieldValue{namespace, terms[i].Value} }
	for i, term := range terms {
		if term.Operator != selection.Equals && term.Operator != selection.DoubleEquals {
			return nil, errInexact
		}
		var ok bool
		c.mu.RLock()
		indexes[i], ok = c.fields[term.Field]
		c.mu.RUnlock()
		if !ok {
			return nil, fmt.Errorf("controllerruntime: index with name field:%s does not exist for %s: add it with IndexField", term.Field, c.kind)
		}
		if indexes[i].Len(now, of(i)) < indexes[best].Len(now, of(best)) {
			best = i
		}
	}
	return func(yield func(object) bool) {
		for obj := range indexes[best].Objects(now, of(best)) {
			matches := true
			for i := range terms {
				matches = matches && (i == best || slices.Contains(indexes[i].values(obj), of(i)))
			}
			if matches && !yield(obj) {
				return
			}
		}
	}, nil
}

// errInexact has controller-runtime's text, which programs may match.
var errInexact = errors.New("non-exact field matches are not supported by the cache")

// fill makes the items of a list, which are structs or pointers to them.
func (c *collection) fill(out client.ObjectList, found []object, asked *bool) error {
	items, err := meta.GetItemsPtr(out)
	if err != nil {
		return err
	}
	into := reflect.ValueOf(items).Elem()
	element := into.Type().Elem()
	all := reflect.MakeSlice(into.Type(), len(found), len(found))
	config, same := c.config(metav1.NamespaceAll)
	same = same && len(c.configs) == 1
	for i, obj := range found {
		if !same {
			config, _ = c.config(obj.GetNamespace())
		}
		value, item := reflect.ValueOf(obj), all.Index(i)
		structs := value.Type().Elem() == element
		if !structs && !value.Type().AssignableTo(element) {
			return fmt.Errorf("controllerruntime: list %s: the cache has a %T, and the caller wants a %s", c.kind.Kind, obj, element)
		}
		switch shared := c.asIs(obj, uncopied(config, asked)); {
		case shared && structs:
			item.Set(value.Elem())
		case shared:
			item.Set(value)
		case structs:
			c.copyInto(value, item.Addr())
		default:
			copied := reflect.New(value.Type().Elem())
			c.copyInto(value, copied)
			item.Set(copied)
		}
	}
	into.Set(all)
	return nil
}
