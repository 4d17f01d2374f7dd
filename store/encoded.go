package store

import (
	"bytes"
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
	// Decoded are nil. Keeper is that store.
	Entry  Object
	Keeper Keeper

	buffer *[]byte // of Data, if another object may have it next
}

// Keeper is a store that keeps objects as entries. It is safe for concurrent use.
type Keeper interface {
	// Holds reports whether the entry was made of just these bytes.
	Holds(entry Object, data []byte) bool
	// Open decodes an object in any form: as the store's readers get it, or would get it.
	Open(e *Encoded) Object
}

// Holds reports whether a store keeps e, and has made it of just these bytes.
func (e *Encoded) Holds(data []byte) bool { return e.Keeper != nil && e.Keeper.Holds(e.Entry, data) }

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

// Opened is a snapshot of the same content as entries. open makes the object of an entry each time
// that a reader asks, and must be safe for concurrent use.
func Opened[T Object](entries Snapshot[Object], open func(entry Object) T) Snapshot[T] {
	if entries.at == nil {
		return Snapshot[T]{}
	}
	return Snapshot[T]{&version[T]{resourceVersion: entries.at.resourceVersion, closed: &closed[T]{entries.at, open, partsBy(open)}}}
}
