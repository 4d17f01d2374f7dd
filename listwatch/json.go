package listwatch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

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
	return &jsonFrames[T]{in: jsonReader{r: r, limit: e.limit}, identify: e.held != nil}, nil
}

// list accepts fields in any order.
func (e jsonEncoding[T]) list(r *bufio.Reader, items *items[T]) (meta metav1.ListMeta, err error) {
	in := &jsonReader{r: r, limit: e.limit}
	var head metav1.TypeMeta
	listed := false
	err = in.object(func(key string) error {
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
	case !listed && !strings.HasSuffix(head.Kind, "List"):
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
}

// waits is never true: to see whether a value is complete costs a scan, a good part of the work.
func (*jsonFrames[T]) waits() bool { return false }

func (*jsonFrames[T]) close() {}

func (j *jsonFrames[T]) next() (frame[T], error) {
	if j.in.r.Buffered() == 0 {
		j.in.buffer = spare(j.in.buffer)
	}
	if _, err := j.in.next(); err != nil {
		return frame[T]{}, err
	}
	data, err := j.in.value()
	if err != nil {
		return frame[T]{}, unexpected(err)
	}
	var f frame[T]
	err = wire.EachMember(data, func(key, value []byte) (err error) {
		switch string(key) {
		case "type":
			var event []byte
			event, err = wire.Unquote(value)
			f.event = eventName(event)
		case "object":
			f.object = value
		default:
			err = wire.Valid(value)
		}
		return err
	})
	if j.identify {
		f.identity = jsonIdentity(f.object)
	}
	return f, err
}

// jsonReader splits a stream into JSON values.
type jsonReader struct {
	r      *bufio.Reader
	limit  int
	buffer []byte // used by value
}

// next skips white space and returns the next byte without reading it.
func (j *jsonReader) next() (byte, error) {
	for {
		b, err := j.r.ReadByte()
		if err != nil {
			return 0, err
		}
		if !wire.IsSpace(b) {
			return b, j.r.UnreadByte()
		}
	}
}

// expect reads one byte of structure.
func (j *jsonReader) expect(want byte) error {
	got, err := j.next()
	switch {
	case err != nil:
		return unexpected(err)
	case got != want:
		return wire.ErrJSON
	}
	_, err = j.r.Discard(1)
	return err
}

// object calls field for each key of an object, with the reader at the value, which field must
// read.
func (j *jsonReader) object(field func(key string) error) error {
	return j.members('{', '}', func() error {
		data, err := j.value()
		if err != nil {
			return err
		}
		key, err := wire.Unquote(data)
		if err != nil {
			return err
		}
		if err := j.expect(':'); err != nil {
			return err
		}
		return field(string(key))
	})
}

// array calls element for each element of an array, with the reader at it; null is an empty array.
func (j *jsonReader) array(element func() error) error {
	if b, err := j.next(); err == nil && b == 'n' {
		return j.skip()
	}
	return j.members('[', ']', element)
}

// members reads the comma-separated members between two brackets.
func (j *jsonReader) members(open, end byte, member func() error) error {
	if err := j.expect(open); err != nil {
		return err
	}
	for first := true; ; first = false {
		b, err := j.next()
		if err != nil {
			return unexpected(err)
		}
		if b == end {
			_, err = j.r.Discard(1)
			return err
		}
		if !first {
			if err := j.expect(','); err != nil {
				return err
			}
		}
		if err := member(); err != nil {
			return err
		}
	}
}

// value reads one whole value; it is valid until the next call.
func (j *jsonReader) value() ([]byte, error) {
	j.buffer = j.buffer[:0]
	err := j.scan(func(part []byte) error {
		if len(j.buffer)+len(part) > j.limit {
			return tooLarge(j.limit)
		}
		j.buffer = append(j.buffer, part...)
		return nil
	})
	return j.buffer, err
}

// decode reads a value of the list itself.
func (j *jsonReader) decode(key string, into any) error {
	value, err := j.value()
	if err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(value, into); err != nil {
		return fmt.Errorf("%s of the list: %w", key, withoutValues(err))
	}
	return nil
}

func (j *jsonReader) skip() error {
	value, err := j.value()
	if err != nil {
		return err
	}
	return wire.Valid(value)
}

// end requires the end of the stream: nothing follows a list. HTTP keeps a connection that was read
// to its end.
func (j *jsonReader) end() error {
	_, err := j.next()
	switch err {
	case io.EOF:
		return nil
	case nil:
		return wire.ErrJSON
	}
	return err
}

// scan passes one value on in the pieces that arrive.
func (j *jsonReader) scan(part func([]byte) error) error {
	if _, err := j.next(); err != nil {
		return unexpected(err)
	}
	var s wire.JSONScanner
	for {
		if _, err := j.r.Peek(1); err != nil {
			if err == io.EOF && s.InScalar {
				return nil // the stream's end may end a number
			}
			return unexpected(err)
		}
		window, _ := j.r.Peek(j.r.Buffered())
		n, done := s.Feed(window)
		if err := part(window[:n]); err != nil {
			return err
		}
		_, _ = j.r.Discard(n)
		if done {
			if !s.Started {
				return wire.ErrJSON
			}
			return nil
		}
	}
}

// object decodes one object. gvk is the list's, since its items may omit their own.
func (e jsonEncoding[T]) object(data []byte, gvk schema.GroupVersionKind, _ []byte) (T, error) {
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

func (jsonEncoding[T]) identity(data []byte) identity { return jsonIdentity(data) }

// jsonIdentity stops once name, UID and version are known: servers write metadata first. Later
// bytes cannot change which object the UID names.
func jsonIdentity(data []byte) identity {
	var id identity
	err := wire.EachMember(data, func(key, value []byte) error {
		if string(key) != "metadata" {
			return nil
		}
		err := wire.EachMember(value, id.read)
		if err == nil {
			err = errKnown
		}
		return err
	})
	if err != errKnown {
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
