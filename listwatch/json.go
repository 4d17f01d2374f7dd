package listwatch

import (
	"bufio"
	"bytes"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/checked"
	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/internal/wire"
	"github.com/tributary-go/tributary/store"
)

// A JSON list is one object whose items are read one at a time. A JSON watch is a sequence of
// objects: {"type": …, "object": …}. Splitting only follows brackets and strings; each whole value
// is then decoded, or validated if it is not needed.

type jsonEncoding[T store.Object] struct{ *decoder[T] }

func (jsonEncoding[T]) begins(start []byte, _ bool) bool {
	return start[0] == '{' || wire.IsSpace(start[0])
}

func (e jsonEncoding[T]) frames(r *bufio.Reader) (frames[T], error) {
	return &jsonFrames[T]{in: jsonReader{own: r, r: r, limit: e.limit, fleeting: e.fleeting}, identify: e.held != nil, lean: e.cut(e.lean)}, nil
}

// list accepts fields in any order.
func (e jsonEncoding[T]) list(r *bufio.Reader, items *items[T]) (meta metav1.ListMeta, err error) {
	in := &jsonReader{r: r, limit: e.limit}
	var head metav1.TypeMeta
	listed, empty := false, true
	err = in.object(func(key string) error {
		empty = false
		switch key {
		case "kind":
			if err := in.decode(key, &head.Kind); err != nil {
				return err
			}
			return e.checkList(head.Kind)
		case "apiVersion":
			return in.decode(key, &head.APIVersion)
		case "metadata":
			return in.decode(key, &meta)
		case "items":
			if listed {
				return wire.ErrJSON // the last key wins, but the first items were yielded
			}
			listed = true
			return in.array(func() error {
				data, err := in.value()
				if err != nil {
					return err
				}
				return items.take(data, e.itemKind(head))
			})
		}
		return in.skip()
	})
	switch {
	case err != nil:
		return meta, err
	case !listed && !strings.HasSuffix(head.Kind, "List") && !(empty && e.asClientGo):
		return meta, errNoList
	}
	return meta, in.end()
}

// itemKind is the items' kind by the list, or else by the Go type.
func (e jsonEncoding[T]) itemKind(list metav1.TypeMeta) schema.GroupVersionKind {
	gvk := itemKind(list.APIVersion, list.Kind)
	if gvk.Kind == "" {
		gvk.Kind = e.kind
	}
	return gvk
}

type jsonFrames[T store.Object] struct {
	in       jsonReader
	identify bool
	lean     func(data []byte) []byte // nil if objects stay as they are
}

func (j *jsonFrames[T]) waits() bool { return j.in.waits() }

func (j *jsonFrames[T]) close() { j.in.close() }

func (j *jsonFrames[T]) next() (frame[T], error) {
	j.in.quiet()
	if _, err := j.in.next(); err != nil {
		return frame[T]{}, err
	}
	data, err := j.in.value()
	if err != nil {
		return frame[T]{}, unexpected(err)
	}
	f, usual := usualEvent[T](data, j.in.inner)
	if !usual {
		err = wire.EachMember(data, func(key, value []byte) (err error) {
			switch string(key) {
			case "type":
				var event []byte
				event, err = wire.Unquote(value)
				f.event, _ = eventName(event)
			case "object":
				if f.object != nil { // the last one counts, and the others are not decoded
					err = wire.Valid(f.object)
				}
				f.object = value
			default:
				err = wire.Valid(value)
			}
			return err
		})
	}
	if f.size = len(f.object); j.lean != nil {
		f.object = j.lean(f.object)
	}
	if j.identify {
		f.identity = jsonIdentity(f.object)
	}
	return f, err
}

// maxEventHead is more than an event has before its object.
const maxEventHead = 64

// usualEvent splits an event as servers write it, without another scan:
// {"type":"MODIFIED","object":{…}}. inner is the end of the first object in the event.
func usualEvent[T store.Object](data []byte, inner int) (f frame[T], ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(`{"type":"`))
	name, _, found := bytes.Cut(rest[:min(len(rest), maxEventHead)], []byte(`","object":{`))
	event, known := eventName(name)
	if !ok || !found || !known || inner != len(data)-1 || data[inner] != '}' {
		return f, false
	}
	f.event = event
	f.object = data[len(data)-len(rest)+len(name)+len(`","object":`) : inner]
	return f, true
}

func (e jsonEncoding[T]) object(data []byte, gvk schema.GroupVersionKind, _ sharing.Last) (T, sharing.Notes, error) {
	obj, err := e.decode(data, gvk)
	return obj, nil, err
}

// decode decodes one object. gvk is the list's, since its items may omit their own.
func (e jsonEncoding[T]) decode(data []byte, gvk schema.GroupVersionKind) (T, error) {
	obj := e.new()
	var none T
	if len(data) == 0 || data[0] != '{' {
		return none, errNotObject
	}
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		if err := e.unstructured(u, data, gvk); err != nil {
			return none, err
		}
		return e.dropped(obj), nil
	}
	if err := e.typed(data, obj); err != nil {
		return none, withoutValues(err)
	}
	if own := obj.GetObjectKind().GroupVersionKind(); own.Kind != "" {
		gvk = own
	}
	if gvk.Kind == "" {
		return none, errNoKind
	}
	if err := e.check(gvk.Kind); err != nil {
		return none, err
	}
	if e.kind != "" {
		gvk = schema.GroupVersionKind{}
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return e.dropped(obj), nil
}

func (e jsonEncoding[T]) typed(data []byte, obj any) error {
	if e.memo != nil {
		return e.memo.UnmarshalTyped(data, obj)
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, obj)
}

func (e jsonEncoding[T]) unstructured(u *unstructured.Unstructured, data []byte, gvk schema.GroupVersionKind) (err error) {
	if e.memo != nil {
		u.Object, err = e.memo.UnmarshalTree(data)
	} else {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, &u.Object)
	}
	if err != nil {
		return withoutValues(err)
	}
	if u.GetKind() == "" && gvk.Kind != "" {
		u.SetGroupVersionKind(gvk)
	}
	if u.GetKind() == "" || u.GetAPIVersion() == "" {
		return errors.New("the object has no kind or no apiVersion")
	}
	return nil
}

func (jsonEncoding[T]) status(data []byte, into *metav1.Status) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}

func (jsonEncoding[T]) key(data []byte) string {
	var head metav1.PartialObjectMetadata
	// A mismatch elsewhere in the metadata leaves the names readable.
	_ = kjson.UnmarshalCaseSensitivePreserveInts(data, &head)
	return store.KeyOf(&head)
}

// lean leaves objects of a Go type as they are: they are decoded, without managed fields.
func (e jsonEncoding[T]) lean(data []byte) []byte {
	if e.kind != "" {
		return data
	}
	return checked.LeanJSON(data)
}

func (jsonEncoding[T]) identity(data []byte) identity { return jsonIdentity(data) }

// jsonIdentity stops once name, UID and version are known: servers write metadata first, and those
// before the rest of it. Later bytes cannot change which object the UID names.
func jsonIdentity(data []byte) identity {
	var id identity
	metadata := wire.MemberFrom(data, "metadata")
	if err := wire.EachMember(metadata, id.read); err != nil && err != errKnown {
		return identity{}
	}
	return id
}

// errKnown ends a scan whose result is complete.
var errKnown = errors.New("known")

// read reads one member of the metadata.
func (id *identity) read(key, value []byte) (err error) {
	var into *[]byte
	switch string(key) {
	case "name":
		into = &id.name
	case "namespace":
		into = &id.namespace
	case "uid":
		into = &id.uid
	case "resourceVersion":
		into = &id.resourceVersion
	default:
		return nil
	}
	if *into, err = wire.Unquote(value); err == nil && id.name != nil && id.uid != nil && id.resourceVersion != nil {
		err = errKnown
	}
	return err
}
