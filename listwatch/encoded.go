package listwatch

import (
	"reflect"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/checked"
	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/store"
)

// Encoded returns the same source for a store that keeps bytes, such as store/packed: an object is
// checked and not decoded. An object that decoding would refuse comes as a *[DecodeError] all the
// same.
//
// Objects are decoded if only that can tell whether they decode, which is rare in protobuf, and in
// JSON for objects without a Go type. JSON of a Go type is decoded always. So are the objects of
// functions, of [Project] and [Intercept], and with [WithMutationDetector]. [DropManagedFields]
// cuts the bytes of the managed fields out of the object's.
func (lw *ListWatch[T]) Encoded() *ListWatch[*store.Encoded] {
	if lw.encoded != nil {
		return lw.encoded()
	}
	fleeting := lw.collection.resource == secrets
	out := Project(lw, func(obj T) *store.Encoded { return decodedOf(obj, fleeting) }, ReadOnly())
	out.holding, out.objects = nil, lw.ObjectType()
	return out
}

// decodedOf is the encoded form of an object that was decoded.
func decodedOf(obj store.Object, fleeting bool) *store.Encoded {
	e := &store.Encoded{Decoded: obj, Fleeting: fleeting}
	e.Namespace, e.Name, e.UID, e.ResourceVersion = obj.GetNamespace(), obj.GetName(), obj.GetUID(), obj.GetResourceVersion()
	e.Annotations = obj.GetAnnotations() // of a bookmark, they tell that a list has ended
	e.SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return e
}

// encoded is the source for a reader that keeps bytes.
func (c *clientSource[T]) encoded() *ListWatch[*store.Encoded] {
	lw := (&clientSource[*store.Encoded]{
		client: c.client, resource: c.resource, origin: c.origin, options: c.options,
		acceptList: c.acceptList, acceptWatch: c.acceptWatch, decoder: newChecker(c.decoder, c.resource == secrets),
	}).listWatch()
	lw.objects = reflect.TypeFor[T]().String()
	lw.unshared = func() *ListWatch[*store.Encoded] { return c.unshared().encoded() }
	hold := lw.holding
	lw.holding = func(held heldCopy[*store.Encoded]) ListerWatcher[*store.Encoded] {
		held.compares = (*store.Encoded).Holds
		out := hold(held).(*ListWatch[*store.Encoded])
		out.objects = lw.objects
		return out
	}
	return lw
}

// checker stands in for decoding: it checks objects of T, and keeps their bytes.
type checker[T store.Object] struct {
	decoder  *decoder[T] // of the unusual ones
	messages *checked.Plan
	trees    bool // T has no Go type of its own
	fleeting bool
}

func newChecker[T store.Object](d *decoder[T], fleeting bool) *decoder[*store.Encoded] {
	plain := *d
	if plain.held = nil; !d.drop { // with a memo, JSON is decoded without its managed fields
		plain.memo = nil
	}
	c := checker[T]{decoder: &plain, fleeting: fleeting}
	_, c.trees = any(d.new()).(*unstructured.Unstructured)
	if d.protobuf {
		c.messages = checked.Of(reflect.TypeOf(d.new()).Elem())
	}
	return &decoder[*store.Encoded]{
		new: func() *store.Encoded { return new(store.Encoded) }, kind: d.kind, protobuf: d.protobuf, limit: d.limit,
		plain: new(atomic.Uint64), asClientGo: d.asClientGo, keep: c, fleeting: fleeting, cuts: d.drop,
	}
}

// keep implements keeper.
func (c checker[T]) keep(e encoding[*store.Encoded], data []byte, kind schema.GroupVersionKind) (*store.Encoded, error) {
	if isJSON(e) {
		return c.json(e, data, kind)
	}
	if err := c.decoder.check(kind.Kind); err != nil {
		return nil, err
	}
	id := protobufIdentity(data)
	if len(id.name) == 0 || !c.messages.Accepts(data) {
		return c.decode(e, data, kind)
	}
	out := c.kept(id, data)
	if c.decoder.kind == "" {
		out.SetGroupVersionKind(kind)
	}
	return out, nil
}

func (c checker[T]) json(e encoding[*store.Encoded], data []byte, kind schema.GroupVersionKind) (*store.Encoded, error) {
	if c.trees {
		t, ok := checked.JSON(data)
		if ok && len(t.Name) > 0 && len(t.Kind) > 0 && len(t.APIVersion) > 0 {
			out := c.kept(identity{t.Namespace, t.Name, t.ResourceVersion, t.UID}, data)
			out.JSON, out.TypeMeta = true, metav1.TypeMeta{APIVersion: string(t.APIVersion), Kind: string(t.Kind)}
			return out, nil
		}
	}
	out, err := c.decode(e, data, kind)
	// The document tells more than the type. Without managed fields, the object is all that counts.
	if err == nil && c.decoder.kind != "" && !c.decoder.drop {
		out.Keep(data)
		out.JSON = true
	}
	return out, err
}

// decode implements keeper.
func (c checker[T]) decode(e encoding[*store.Encoded], data []byte, kind schema.GroupVersionKind) (*store.Encoded, error) {
	var of encoding[T] = protobufEncoding[T]{c.decoder}
	if isJSON(e) {
		of = jsonEncoding[T]{c.decoder}
	}
	obj, _, err := of.object(data, kind, sharing.Last{})
	if err != nil {
		return nil, err
	}
	return decodedOf(obj, c.fleeting), nil
}

func isJSON(e encoding[*store.Encoded]) bool {
	_, is := e.(jsonEncoding[*store.Encoded])
	return is
}

// kept is an object in its bytes.
func (c checker[T]) kept(id identity, data []byte) *store.Encoded {
	out := &store.Encoded{Fleeting: c.fleeting}
	out.Keep(data)
	var space [256]byte // one string for all four, which lasts as long as out
	text := string(append(append(append(append(space[:0], id.namespace...), id.name...), id.uid...), id.resourceVersion...))
	cut := func(part []byte) (of string) {
		of, text = text[:len(part)], text[len(part):]
		return of
	}
	out.Namespace, out.Name = cut(id.namespace), cut(id.name)
	out.UID, out.ResourceVersion = types.UID(cut(id.uid)), cut(id.resourceVersion)
	return out
}
