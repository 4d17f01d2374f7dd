package listwatch

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"strings"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/listwatch/internal/sharing"
	"github.com/tributary-go/tributary/store"
)

// Sizes of what one stream may hold at a time, beside what it reads ahead: a list all the time, and a watch while something
// comes, since there are few lists and, in a process with many reflectors, many watches.
const (
	maxObject   = 32 << 20 // an API server takes no object over 3 MiB
	watchBuffer = 4 << 10
)

// decoder turns the bytes of a stream into objects. Framing knows nothing of objects, and how one object is decoded
// is decided in protobufObject and jsonObject alone. It is safe for concurrent use.
type decoder[T store.Object] struct {
	new      func() T
	weak     func(T) func() any // a weak pointer: nil once nobody keeps the object
	kind     string             // what the objects must be; empty: anything
	protobuf bool               // whether T has generated protobuf code
	limit    int                // bytes of one object
	memo     *sharing.Memo      // what has been decoded already; nil without sharing
	held     *heldCopy[T]       // nil if the reader's copy is not known
	drop     bool               // managedFields
}

// errStopped: the consumer left its loop.
var errStopped = errors.New("stopped")

// unmarshaler is the generated protobuf code of an API type.
type unmarshaler interface{ Unmarshal(data []byte) error }

func newDecoder[O any, T interface {
	*O
	store.Object
}]() *decoder[T] {
	_, protobuf := any(T(new(O))).(unmarshaler)
	return &decoder[T]{new: func() T { return new(O) }, weak: weakly[O, T], kind: kindOf[T](), protobuf: protobuf, limit: maxObject}
}

func weakly[O any, T ~*O](obj T) func() any {
	pointer := weak.Make((*O)(obj))
	return func() any {
		if obj := pointer.Value(); obj != nil {
			return obj
		}
		return nil
	}
}

// share begins to decode equal parts once. A process that may not hash in the way that makes this safe does without.
func (d *decoder[T]) share() {
	if memo, err := sharing.New(); err == nil {
		d.memo = memo
	}
}

// dropManagedFields leaves them out of every object from now on.
func (d *decoder[T]) dropManagedFields() {
	d.drop = true
	if d.memo != nil {
		d.memo.DropManagedFields()
	}
}

// dropped takes them out where they have been decoded all the same. obj is not the reader's yet, but what is in the map of
// an unstructured object may be shared.
func (d *decoder[T]) dropped(obj T) T {
	u, isTree := any(obj).(*unstructured.Unstructured)
	switch {
	case !d.drop:
	case isTree:
		if metadata, ok := u.Object["metadata"].(map[string]any); ok && metadata["managedFields"] != nil {
			metadata = maps.Clone(metadata)
			delete(metadata, "managedFields")
			u.Object["metadata"] = metadata
		}
	default:
		obj.SetManagedFields(nil)
	}
	return obj
}

// listed tells the memo how large a list was.
func (d *decoder[T]) listed(objects, bytes int) {
	if d.memo != nil {
		d.memo.Listed(objects, bytes)
	}
}

// begin doubts what the memo has, if a reader with a copy lists again: it may have written into it.
func (d *decoder[T]) begin(request metav1.ListOptions) {
	initial := !request.Watch || request.SendInitialEvents != nil && *request.SendInitialEvents
	if d.memo != nil && d.held != nil && initial && request.Continue == "" {
		d.memo.Doubt()
	}
}

// counted counts the bytes that come.
type counted struct {
	io.Reader
	bytes int
}

func (c *counted) Read(b []byte) (n int, err error) {
	n, err = c.Reader.Read(b)
	c.bytes += n
	return n, err
}

// list decodes the body of a LIST.
func (d *decoder[T]) list(body io.Reader, yield func(T, error) bool) (metav1.ListMeta, error) {
	r := largeReader(body)
	defer putLargeReader(r)
	start, err := r.Peek(len(protobufMagic))
	switch {
	case string(start) == protobufMagic && !d.protobuf:
		return metav1.ListMeta{}, errNoProtobuf
	case string(start) == protobufMagic:
		return d.protobufList(r, yield)
	case len(start) > 0 && isJSONStart(start):
		return d.jsonList(r, yield)
	case err != nil && strings.HasPrefix(protobufMagic, string(start)):
		return metav1.ListMeta{}, unexpected(err)
	}
	return metav1.ListMeta{}, errNeitherEncoding
}

// frame is one event of a watch before its object is decoded.
type frame[T store.Object] struct {
	event     string
	object    []byte // as it came: in an envelope, where it is protobuf
	json      bool
	malformed error // why it could not be taken apart, though the frames around it are whole

	kind    schema.GroupVersionKind // of the envelope, and what is in it
	message []byte
	sealed  error // why it could not be opened

	identity identity // of the object, as far as it is needed and can be read
	held     counterpart[T]
}

// content is the bytes of the object.
func (f *frame[T]) content() []byte {
	if f.json {
		return f.object
	}
	return f.message
}

// frames are those of one stream. What next returns is valid until it is called while nothing waits.
type frames[T store.Object] interface {
	next() (frame[T], error)
	waits() bool // whether the next one has come already
	close()
}

// watch decodes the body of a WATCH until it ends; nil is a clean end between two frames.
func (d *decoder[T]) watch(body io.Reader, yield func(Event[T], error) bool) error {
	r := bufio.NewReaderSize(body, watchBuffer)
	start, err := r.Peek(1)
	if err != nil {
		return atBoundary(err)
	}
	var frames frames[T] = &jsonFrames[T]{jsonReader{r: r, limit: d.limit}}
	switch {
	case isJSONStart(start):
	case start[0] > ' ': // text, or a frame of more than 512 MiB
		return errNeitherEncoding
	case !d.protobuf:
		return errNoProtobuf
	default:
		frames = &protobufFrames[T]{own: r, r: r, limit: d.limit}
	}
	defer frames.close()
	events := round[frame[T], Event[T]]{decode: d.event, known: d.heldEvent, yield: func(event Event[T], err error) error {
		var unusable *DecodeError
		if err != nil && !errors.As(err, &unusable) {
			return err
		}
		if !yield(event, err) {
			return errStopped
		}
		return nil
	}}
	for {
		f, err := frames.next()
		if err != nil {
			return atBoundary(err)
		}
		switch {
		case !f.json:
			f.identity = protobufIdentity(f.message)
		case d.held != nil:
			f.identity = jsonIdentity(f.object)
		}
		if d.holds(f) {
			f.held = d.held.find(f.identity)
		}
		if err := events.take(f, frames.waits()); err != nil {
			return err
		}
	}
}

// atBoundary makes a clean end of io.EOF, which readers return only where a frame could begin.
func atBoundary(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

func (d *decoder[T]) event(f frame[T]) (Event[T], error) {
	if f.malformed != nil {
		return Event[T]{}, &DecodeError{Op: "watch", Event: "unknown", Err: f.malformed}
	}
	kind := watch.EventType(f.event)
	switch kind {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
	case watch.Error:
		return Event[T]{}, d.status(f)
	default:
		return Event[T]{}, &DecodeError{Op: "watch", Event: "unknown", Object: d.keyIn(f.object, f.json), Err: errUnknownEvent}
	}
	obj, err := d.object(f)
	if err == nil && kind != watch.Bookmark {
		err = named(obj)
	}
	if err != nil {
		return Event[T]{}, &DecodeError{Op: "watch", Event: f.event, Object: d.keyIn(f.object, f.json), Err: err}
	}
	switch kind {
	case watch.Deleted:
		if d.memo != nil {
			d.memo.Forget(f.identity.uid)
		}
	case watch.Added, watch.Modified:
		obj = d.held.settle(f.held, f.content(), obj)
	}
	return newEvent(kind, obj), nil
}

// object decodes the object of an event.
func (d *decoder[T]) object(f frame[T]) (none T, err error) {
	switch {
	case f.json:
		return d.jsonObject(f.object, schema.GroupVersionKind{})
	case f.sealed != nil:
		return none, f.sealed
	case f.kind.Kind == "":
		return none, errNoKind
	}
	if watch.EventType(f.event) == watch.Modified {
		return d.protobufObject(f.message, f.kind, f.identity.uid)
	}
	return d.protobufObject(f.message, f.kind, nil)
}

// status decodes the Status of an ERROR event.
func (d *decoder[T]) status(f frame[T]) error {
	var status metav1.Status
	var err error
	if f.json {
		err = kjson.UnmarshalCaseSensitivePreserveInts(f.object, &status)
	} else if err = f.sealed; err == nil {
		err = status.Unmarshal(f.message)
	}
	if err != nil {
		return errUndecodableStatus
	}
	return statusError(&status)
}

// protobufObject decodes one message. data may be reused afterwards: generated code copies what it keeps. changed is the UID of an
// object that was there before: it is decoded beside its last state.
func (d *decoder[T]) protobufObject(data []byte, gvk schema.GroupVersionKind, changed []byte) (T, error) {
	var none T
	if err := d.check(gvk.Kind); err != nil {
		return none, err
	}
	obj := d.new()
	message, ok := any(obj).(unmarshaler)
	if !ok {
		return none, errNoProtobuf
	}
	var change sharing.Change
	var err error
	switch {
	case d.memo == nil:
		err = message.Unmarshal(data)
	case len(changed) > 0:
		change, err = d.memo.UnmarshalChange(changed, data, message)
	default:
		err = d.memo.Unmarshal(data, message)
	}
	if err != nil {
		return none, errMalformed
	}
	if d.kind == "" {
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
	obj = d.dropped(obj)
	if len(changed) > 0 {
		change.Keep(d.weak(obj))
	}
	return obj, nil
}

// jsonObject decodes one object. gvk is what a list said of its items, which may leave it out themselves.
func (d *decoder[T]) jsonObject(data []byte, gvk schema.GroupVersionKind) (T, error) {
	obj := d.new()
	var none T
	if len(data) == 0 || data[0] != '{' {
		return none, errNotObject
	}
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		if err := d.unstructured(u, data, gvk); err != nil {
			return none, err
		}
		return d.dropped(obj), nil
	}
	if err := d.typed(data, obj); err != nil {
		return none, withoutValues(err)
	}
	if own := obj.GetObjectKind().GroupVersionKind(); own.Kind != "" {
		gvk = own
	}
	if gvk.Kind == "" {
		return none, errNoKind
	}
	if err := d.check(gvk.Kind); err != nil {
		return none, err
	}
	if d.kind != "" {
		gvk = schema.GroupVersionKind{}
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return d.dropped(obj), nil
}

func (d *decoder[T]) typed(data []byte, obj any) error {
	if d.memo != nil {
		return d.memo.UnmarshalTyped(data, obj)
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, obj)
}

func (d *decoder[T]) unstructured(u *unstructured.Unstructured, data []byte, gvk schema.GroupVersionKind) (err error) {
	if d.memo != nil {
		u.Object, err = d.memo.UnmarshalTree(data)
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

// check compares a kind that the server named with the one that the Go type stands for.
func (d *decoder[T]) check(kind string) error {
	if kind != "" && d.kind != "" && kind != d.kind {
		return wrongKind(kind, d.kind)
	}
	return nil
}

// checkList does the same for the kind of a list.
func (d *decoder[T]) checkList(kind string) error {
	if kind == "Status" {
		return wrongKind(kind, "list")
	}
	if kind != "" && d.kind != "" && kind != d.kind+"List" {
		return wrongKind(kind, d.kind+"List")
	}
	return nil
}

// keyIn reads the name of an object that could not be decoded, if that much of it can be.
func (d *decoder[T]) keyIn(data []byte, json bool) string {
	var head metav1.PartialObjectMetadata
	if json {
		// A mismatch elsewhere in the metadata still leaves the names.
		_ = kjson.UnmarshalCaseSensitivePreserveInts(data, &head)
		return store.KeyOf(&head)
	}
	if _, raw, err := new(envelopes).open(data); err == nil {
		data = raw
	}
	_ = head.Unmarshal(data)
	return store.KeyOf(&head)
}
