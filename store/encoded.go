package store

import (
	"bytes"
	"iter"
	"math/bits"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Encoded is an object that was read but not decoded, for a store that keeps bytes. Its metadata
// has name, namespace, UID and resource version, and apiVersion and kind if the decoded object
// would have them. Its source has made sure that decoding succeeds.
type Encoded struct {
	metav1.PartialObjectMetadata

	// Data is the object: a protobuf message, or a JSON document. It is nil if the source had to
	// decode the object, and after [Encoded.Release].
	Data []byte
	// JSON says that Data is JSON. In a document of a type that has no apiVersion and kind when it
	// is decoded, they may be there all the same.
	JSON bool
	// Decoded is the object; nil if it was not decoded.
	Decoded Object
	// Fleeting says that nothing of the object may be remembered after its deletion, as of Secrets.
	Fleeting bool
	// Entry is the object as a store keeps it, if a store's snapshot returned it: then Data and
	// Decoded are nil.
	Entry Entry

	keeper opensAny // the form of that store
	buffer *[]byte  // of Data, if another object may have it next
}

// opensAny is the form of a store of bytes, of any type.
type opensAny interface {
	bytesForm
	open(e *Encoded) Object
}

// Holds reports whether a store keeps e, and has made it of just these bytes.
func (e *Encoded) Holds(data []byte) bool { return e.keeper != nil && e.keeper.Holds(e.Entry, data) }

// Open decodes an object in any form, as the store that keeps e opens its entries. It panics if no
// store keeps e.
func (e *Encoded) Open(item *Encoded) Object { return e.keeper.open(item) }

// Keep sets Data to a copy of data. The copy of a fleeting object has memory of its own.
func (e *Encoded) Keep(data []byte) {
	class := bits.Len(uint(max(1, len(data)) - 1))
	if e.Fleeting || class >= len(buffers) {
		e.Data = bytes.Clone(data)
		return
	}
	if buffer, ok := buffers[class].Get().(*[]byte); ok {
		e.buffer = buffer
	} else {
		made := make([]byte, 1<<class)
		e.buffer = &made
	}
	e.Data = append((*e.buffer)[:0], data...)
}

// Release ends the use of Data: another object gets its memory. A store of bytes calls it once it
// has packed the object.
func (e *Encoded) Release() {
	if e.buffer != nil {
		buffers[bits.Len(uint(len(*e.buffer)-1))].Put(e.buffer)
		e.buffer, e.Data = nil, nil
	}
}

// buffers has the memory of arriving objects by its length, a power of two up to 64 KiB. So a small
// object never holds the memory of a large one.
var buffers [17]sync.Pool

// DeepCopyObject implements [runtime.Object].
func (e *Encoded) DeepCopyObject() runtime.Object {
	out := *e
	e.PartialObjectMetadata.DeepCopyInto(&out.PartialObjectMetadata)
	out.Data, out.buffer = bytes.Clone(e.Data), nil
	if e.Decoded != nil {
		out.Decoded = e.Decoded.DeepCopyObject().(Object)
	}
	return &out
}

// closed is an object that stays as it is kept.
func closed(entry Entry, keeper opensAny) *Encoded {
	e := &Encoded{Entry: entry, keeper: keeper}
	e.Namespace, e.Name, e.UID, e.ResourceVersion = entry.GetNamespace(), entry.GetName(), entry.GetUID(), entry.GetResourceVersion()
	return e
}

// keeper is a store's form, as an object that it keeps knows it.
type keeper[T Object] struct {
	bytesForm
	form Form[T]
}

func (k keeper[T]) open(e *Encoded) Object {
	if e.Entry != nil {
		return k.form.Open(e.Entry)
	}
	return k.form.Open(e)
}

// Encoded is the same store for a reflector that hands over bytes. It panics if the store's form is
// none of bytes.
func (x *Indexer[T]) Encoded() Store[*Encoded] {
	if !x.of.KeepsBytes() {
		panic("store: Encoded: the store keeps no bytes")
	}
	return encoded[T]{x}
}

// encoded is the store of the same objects as bytes.
type encoded[T Object] struct{ of *Indexer[T] }

func (s encoded[T]) Snapshot() Snapshot[*Encoded] { return Snapshot[*Encoded]{s.of.Snapshot().at} }

func (s encoded[T]) Get(key string) (e *Encoded, ok bool) {
	entry, ok := s.of.of.Get(key)
	return orNone[*Encoded](s.of.of.kept, entry), ok
}

func (s encoded[T]) ResourceVersion() string       { return s.of.ResourceVersion() }
func (s encoded[T]) Bookmark(version string) error { return s.of.Bookmark(version) }
func (s encoded[T]) Add(e *Encoded) error          { _, err := s.of.of.Put(e); return err }
func (s encoded[T]) Update(e *Encoded) error       { _, err := s.of.of.Put(e); return err }
func (s encoded[T]) Delete(e *Encoded) error       { _, err := s.of.of.Remove(e); return err }

func (s encoded[T]) Replace(items iter.Seq2[*Encoded, error], resourceVersion func() string) error {
	return s.of.of.Replace(itemsOf(items), resourceVersion)
}
