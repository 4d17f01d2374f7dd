package packed

import (
	"encoding/binary"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed/internal/delta"
)

// cell is an object at rest: the entry of a [store.Closed]. It never changes but for hot. Its bytes
// are one block without pointers, which the garbage collector does not look into:
//
//	flags, digest (8), lengths of namespace, name, UID and version, those four texts, payload
type cell struct {
	unread
	bytes string
	base  *delta.Base // of the payload; nil if that is the document itself
	hot   atomic.Pointer[hotObject]
}

type flags byte

const (
	flagJSON  flags = 1 << iota // the document is JSON, not protobuf
	flagTyped                   // apiVersion and kind precede the message
	flagBare                    // of JSON: decoding drops apiVersion and kind
	flagPlain                   // nothing may be learned from the object
)

// identity names one state of an object.
type identity struct{ namespace, name, uid, resourceVersion string }

func identityOf(obj store.Object) identity {
	return identity{obj.GetNamespace(), obj.GetName(), string(obj.GetUID()), obj.GetResourceVersion()}
}

// seed is that of the digests. They are compared within the process only.
var seed = maphash.MakeSeed()

const digestAt, lengthsAt = 1, 9

func newCell(id identity, f flags, digest uint64, payload []byte, base *delta.Base) *cell {
	texts := [...]string{id.namespace, id.name, id.uid, id.resourceVersion}
	size := lengthsAt + len(payload)
	for _, text := range texts {
		size += uvarintLen(len(text)) + len(text)
	}
	b := append(make([]byte, 0, size), byte(f))
	b = binary.LittleEndian.AppendUint64(b, digest)
	for _, text := range texts {
		b = binary.AppendUvarint(b, uint64(len(text)))
	}
	for _, text := range texts {
		b = append(b, text...)
	}
	b = append(b, payload...)
	return &cell{bytes: unsafe.String(unsafe.SliceData(b), len(b)), base: base}
}

func uvarintLen(n int) (size int) {
	for size = 1; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// split returns the texts of the cell, in its own memory, and the place of the payload.
func (c *cell) split() (id identity, payload int) {
	var ends [4]int
	at, sum := lengthsAt, 0
	for i := range ends {
		n, shift := 0, 0
		for ; c.bytes[at] >= 0x80; at++ {
			n |= int(c.bytes[at]&0x7f) << shift
			shift += 7
		}
		n |= int(c.bytes[at]) << shift
		at++
		sum += n
		ends[i] = sum
	}
	texts := c.bytes[at : at+sum]
	return identity{texts[:ends[0]], texts[ends[0]:ends[1]], texts[ends[1]:ends[2]], texts[ends[2]:]}, at + sum
}

// is reports whether the cell is of that version of the object.
func (c *cell) is(id identity) bool {
	own, _ := c.split()
	return own == id && id.uid != "" && id.resourceVersion != ""
}

func (c *cell) flags() flags { return flags(c.bytes[0]) }

func (c *cell) digest() uint64 {
	return binary.LittleEndian.Uint64(c.block()[digestAt:])
}

// block is the cell's bytes, which are read-only.
func (c *cell) block() []byte { return unsafe.Slice(unsafe.StringData(c.bytes), len(c.bytes)) }

// read calls use with the document, which is valid until use returns.
func (c *cell) read(use func(document []byte, flags flags) error) error {
	_, at := c.split()
	payload := c.block()[at:]
	if c.base == nil {
		return use(payload, c.flags())
	}
	r := readers.Get().(*reader)
	defer r.done()
	document, err := r.unpacker.Unpack(r.document, payload, c.base)
	if err != nil {
		return err
	}
	r.document = document
	return use(document, c.flags())
}

// The texts are copies: a key, an index or a version that a store remembers keeps no cell alive.

func (c *cell) GetNamespace() string { id, _ := c.split(); return strings.Clone(id.namespace) }

func (c *cell) GetName() string { id, _ := c.split(); return strings.Clone(id.name) }

func (c *cell) GetUID() types.UID { id, _ := c.split(); return types.UID(strings.Clone(id.uid)) }

func (c *cell) GetResourceVersion() string {
	id, _ := c.split()
	return strings.Clone(id.resourceVersion)
}
