package packed

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed/internal/delta"
)

// cell is an object at rest: a [store.Entry]. It never changes but for hot. The text
// of its key is the one that the store has. All else is one block without pointers, which the
// garbage collector does not look into:
//
//	flags, length of the block (4), digest (8), lengths of key and namespace, UID, version, payload
type cell struct {
	unread
	key   *byte
	block *byte
	base  *delta.Base // of the payload, or its tail; nil if the payload is the document itself
	hot   atomic.Pointer[hotObject]
}

type flags byte

const (
	flagJSON   flags = 1 << iota // the document is JSON, not protobuf
	flagTyped                    // apiVersion and kind precede the message
	flagBare                     // of JSON: decoding drops apiVersion and kind
	flagPlain                    // nothing may be learned from the object
	flagUUID                     // the UID is 16 bytes, not text
	flagNumber                   // the resource version is a number, not text
	flagTree                     // of JSON: the object has no Go type of its own
)

// identity names one state of an object.
type identity struct{ namespace, name, uid, resourceVersion string }

func identityOf(obj store.Object) identity {
	return identity{obj.GetNamespace(), obj.GetName(), string(obj.GetUID()), obj.GetResourceVersion()}
}

// seed is that of the digests. They are compared within the process only.
var seed = maphash.MakeSeed()

const lengthAt, digestAt, lengthsAt = 1, 5, 13

// newCell makes the cell of an object under its key.
func newCell(key string, id identity, f flags, digest uint64, payload []byte, base *delta.Base) *cell {
	var space [128]byte
	state, form := appendState(space[:0], id.uid, id.resourceVersion)
	size := lengthsAt + uvarintLen(len(key)) + uvarintLen(len(id.namespace)) + len(state) + len(payload)
	if tail := tailOf(size); base == nil && tail > 0 && tail < len(payload) {
		at := len(payload) - tail
		payload, base, size = payload[:at], delta.Tail(payload[at:]), size-tail
	}
	b := append(make([]byte, 0, size), byte(f|form))
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	b = binary.LittleEndian.AppendUint64(b, digest)
	b = binary.AppendUvarint(b, uint64(len(key)))
	b = binary.AppendUvarint(b, uint64(len(id.namespace)))
	b = append(append(b, state...), payload...)
	return &cell{key: unsafe.StringData(key), block: unsafe.SliceData(b), base: base}
}

// Go allocates whole pages for more than mostSmall bytes. A block of which the last page would be
// empty for the most part has a tail in place of that page, if it saves more than a thirty-second.
const (
	mostSmall = 32 << 10
	page      = 8 << 10
)

// tailOf is the length of the tail of a block; 0 if it is to have none.
func tailOf(size int) int {
	tail := size % page
	if size <= mostSmall || page-tail <= size/32 {
		return 0
	}
	return tail
}

func uvarintLen(n int) (size int) {
	for size = 1; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// parts are those of a cell, in its own memory.
type parts struct {
	key       string
	namespace int // its length
	flags     flags
	digest    uint64
	rest      []byte // UID, version, payload
}

func (c *cell) parts() parts {
	head := unsafe.Slice(c.block, lengthsAt)
	size := binary.LittleEndian.Uint32(head[lengthAt:])
	key, rest := cutLength(unsafe.Slice(c.block, size)[lengthsAt:])
	namespace, rest := cutLength(rest)
	return parts{unsafe.String(c.key, key), namespace, flags(head[0]), binary.LittleEndian.Uint64(head[digestAt:]), rest}
}

// cutLength splits a length off, which newCell has put there.
func cutLength(b []byte) (n int, rest []byte) {
	if b[0] < 0x80 {
		return int(b[0]), b[1:]
	}
	length, size := binary.Uvarint(b)
	return int(length), b[size:]
}

// names are namespace and name, in the memory of the key.
func (p parts) names() (namespace, name string) {
	if p.namespace == 0 {
		return "", p.key
	}
	return p.key[:p.namespace], p.key[p.namespace+len("/"):]
}

// identity is a copy of the identity. Its texts keep no cell alive.
func (c *cell) identity() (id identity) {
	p := c.parts()
	id.namespace, id.name = p.names()
	id.uid, id.resourceVersion, _ = cutState(p.rest, p.flags)
	return id
}

// is reports whether the cell is of that version of the object.
func (c *cell) is(id identity) bool {
	if id.uid == "" || id.resourceVersion == "" {
		return false
	}
	p := c.parts()
	var space [128]byte
	state, form := appendState(space[:0], id.uid, id.resourceVersion)
	namespace, name := p.names()
	return namespace == id.namespace && name == id.name && form == p.flags&(flagUUID|flagNumber) && bytes.HasPrefix(p.rest, state)
}

func (c *cell) digest() uint64 { return c.parts().digest }

// Key is the key. The store keeps this string, and no other.
func (c *cell) Key() string { return c.parts().key }

// read calls use with the document, which is valid until use returns.
func (c *cell) read(use func(document []byte, flags flags) error) error {
	p := c.parts()
	payload := skipState(p.rest, p.flags)
	if c.base == nil {
		return use(payload, p.flags)
	}
	r := readers.Get().(*reader)
	defer r.done()
	document, err := r.unpacker.Unpack(r.document, payload, c.base)
	if err != nil {
		return err
	}
	r.document = document
	if c.base.IsTail() { // it may be a Secret, of which no buffer may keep anything
		defer clear(document)
	}
	return use(document, p.flags)
}

// The texts are copies: a key, an index or a version that a store remembers keeps no block alive,
// and no longer text.

func (c *cell) GetNamespace() string {
	namespace, _ := c.parts().names()
	return strings.Clone(namespace)
}

func (c *cell) GetName() string {
	_, name := c.parts().names()
	return strings.Clone(name)
}

func (c *cell) GetUID() types.UID {
	p := c.parts()
	uid, _ := cutUID(p.rest, p.flags)
	return types.UID(uid)
}

func (c *cell) GetResourceVersion() string {
	p := c.parts()
	_, version, _ := cutState(p.rest, p.flags)
	return version
}
