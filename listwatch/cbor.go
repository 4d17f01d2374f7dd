package listwatch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/client-go/features"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/wire"
	"github.com/tributary-go/tributary/store"
)

// CBOR (KEP-4222): a list is one data item, a watch a sequence of them (RFC 8742). Servers write
// members in a random order, so no two encodings of an object have equal bytes.
//
// Each object is therefore turned into JSON with sorted members, and decoded from that. So it is
// interned, compared with the held copy, and refused by the same rules as JSON.

const mediaCBOR = "application/cbor"

// cborAllowed and cborPreferred are client-go's gates.
func cborAllowed() bool { return features.FeatureGates().Enabled(features.ClientsAllowCBOR) }

func cborPreferred() bool {
	return cborAllowed() && features.FeatureGates().Enabled(features.ClientsPreferCBOR)
}

// withCBOR lets clients decode the errors of a server that answers in CBOR.
func withCBOR() []serializer.CodecFactoryOptionsMutator {
	if !cborAllowed() {
		return nil
	}
	return []serializer.CodecFactoryOptionsMutator{serializer.WithSerializer(cbor.NewSerializerInfo)}
}

// cborEncoding reads CBOR. After the framing, the bytes of an object are its JSON.
type cborEncoding[T store.Object] struct{ jsonEncoding[T] }

// begins: a document begins with a tag, or at least with a map.
func (cborEncoding[T]) begins(start []byte, _ bool) bool {
	return start[0] == wire.CBORMagic[0] || start[0]>>5 == wire.CBORMapType
}

func (e cborEncoding[T]) frames(r *bufio.Reader) (frames[T], error) {
	return &cborFrames[T]{in: cborReader{r: r, limit: e.limit}, identify: e.held != nil}, nil
}

// list accepts fields in any order. If the list's kind comes after the items, and neither they nor
// the Go type name one, the items wait for it.
func (e cborEncoding[T]) list(r *bufio.Reader, items *items[T]) (meta metav1.ListMeta, err error) {
	in := &cborReader{r: r, limit: e.limit}
	var head metav1.TypeMeta
	var waiting [][]byte
	item := func(data []byte, unreadable error) error {
		if unreadable != nil {
			var none T
			return items.pass(none, &DecodeError{Op: "list", Object: e.key(data), Err: unreadable})
		}
		if len(waiting) > 0 || e.kind == "" && (head.Kind == "" || head.APIVersion == "") && !namesKind(data) {
			waiting = append(waiting, bytes.Clone(data))
			return nil
		}
		return items.take(data, e.itemKind(head))
	}
	listed := false
	err = in.members(func(key string) error {
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
			listed = true
			return in.elements(item)
		}
		return in.skip()
	})
	switch {
	case err != nil:
		return meta, unexpected(err)
	case !listed && !strings.HasSuffix(head.Kind, "List"):
		return meta, errNoList
	}
	for _, data := range waiting {
		if err := items.take(data, e.itemKind(head)); err != nil {
			return meta, err
		}
	}
	return meta, in.end()
}

// namesKind reports whether an object with sorted members has a kind and a version of its own.
func namesKind(data []byte) bool {
	named := 0
	_ = wire.EachMember(data, func(key, _ []byte) error {
		switch name := string(key); {
		case name == "apiVersion" || name == "kind":
			named++
		case name > "kind":
			return errKnown
		}
		return nil
	})
	return named == 2
}

type cborFrames[T store.Object] struct {
	in       cborReader
	identify bool
}

// waits is never true, as in JSON.
func (*cborFrames[T]) waits() bool { return false }

func (*cborFrames[T]) close() {}

func (c *cborFrames[T]) next() (f frame[T], err error) {
	if c.in.r.Buffered() == 0 {
		c.in.buffer, c.in.text = spare(c.in.buffer), spare(c.in.text)
	}
	if _, err := c.in.r.Peek(1); err != nil {
		return f, err
	}
	data, err := c.in.item()
	if err != nil {
		return f, unexpected(err)
	}
	var object []byte
	f.malformed = wire.EachCBORMember(data, func(key string, value []byte) (err error) {
		switch key {
		case "type":
			f.event, err = c.in.eventName(value)
		case "object":
			object = value
		}
		return err
	})
	if f.malformed == nil && object != nil {
		f.object, f.sealed = c.in.json(object)
	}
	if c.identify {
		f.identity = jsonIdentity(f.object)
	}
	return f, nil
}

// cborReader splits a stream into data items.
type cborReader struct {
	r            *bufio.Reader
	limit        int
	buffer, text []byte // used by item and json
}

// item reads one whole item; it is valid until the next call.
func (c *cborReader) item() ([]byte, error) {
	c.buffer = c.buffer[:0]
	var s wire.CBORScanner
	for {
		if _, err := c.r.Peek(1); err != nil {
			return nil, err
		}
		window, _ := c.r.Peek(c.r.Buffered())
		n, done, err := s.Feed(window)
		if err != nil {
			return nil, err
		}
		if len(c.buffer)+n > c.limit {
			return nil, tooLarge(c.limit)
		}
		c.buffer = append(c.buffer, window[:n]...)
		_, _ = c.r.Discard(n)
		if done {
			return c.buffer, nil
		}
	}
}

// json turns an item into JSON, which is valid until the next call. With an error, it returns only
// the metadata, for the name, if that can be read.
func (c *cborReader) json(item []byte) (text []byte, err error) {
	c.text, err = wire.AppendJSON(c.text[:0], item)
	if err == nil {
		return c.text, nil
	}
	c.text = c.text[:0]
	_ = wire.EachCBORMember(item, func(key string, value []byte) error {
		if key != "metadata" {
			return nil
		}
		whole, err := wire.AppendJSON(append(c.text, `{"metadata":`...), value)
		if err == nil {
			c.text = append(whole, '}')
		}
		return errKnown
	})
	return c.text, err
}

func (c *cborReader) eventName(value []byte) (string, error) {
	text, err := c.json(value)
	if err == nil {
		text, err = wire.Unquote(text)
	}
	return eventName(text), err
}

// members calls do for each member of the list, with the reader at its value, which do must read.
func (c *cborReader) members(do func(key string) error) error {
	isMap, pairs, open, err := wire.CBORHead(c.r.ReadByte)
	if err == nil && !isMap {
		err = errNoList
	}
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	return c.each(pairs, open, func() error {
		item, err := c.item()
		if err != nil {
			return err
		}
		key, err := wire.CBORKey(item)
		if err == nil && (seen[key] || len(seen) == maxFields) {
			err = wire.ErrCBOR // the last key wins, but the first items were yielded
		}
		if err != nil {
			return err
		}
		seen[key] = true
		return do(key)
	})
}

// elements calls do for each element of an array; null is an empty array.
func (c *cborReader) elements(do func(json []byte, unreadable error) error) error {
	if b, err := c.r.Peek(1); err == nil && b[0] == cborNull {
		_, err = c.r.Discard(1)
		return err
	}
	isMap, count, open, err := wire.CBORHead(c.r.ReadByte)
	if err == nil && isMap {
		err = wire.ErrCBOR
	}
	if err != nil {
		return err
	}
	return c.each(count, open, func() error {
		item, err := c.item()
		if err != nil {
			return err
		}
		return do(c.json(item))
	})
}

const (
	cborNull  = 0xf6
	maxFields = 64 // of a list, which has four
)

// each calls do count times or, if the container is open, until a break.
func (c *cborReader) each(count uint64, open bool, do func() error) error {
	for i := uint64(0); open || i < count; i++ {
		if open {
			if b, err := c.r.Peek(1); err == nil && wire.IsCBORBreak(b[0]) {
				_, err = c.r.Discard(1)
				return err
			}
		}
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// decode reads a value of the list itself.
func (c *cborReader) decode(name string, into any) error {
	item, err := c.item()
	if err != nil {
		return err
	}
	text, err := c.json(item)
	if err == nil {
		if err = kjson.UnmarshalCaseSensitivePreserveInts(text, into); err != nil {
			err = withoutValues(err)
		}
	}
	if err != nil {
		return fmt.Errorf("%s of the list: %w", name, err)
	}
	return nil
}

func (c *cborReader) skip() error {
	item, err := c.item()
	if err == nil {
		_, err = c.json(item)
	}
	return err
}

// end requires the end of the stream: nothing follows a list.
func (c *cborReader) end() error {
	_, err := c.r.ReadByte()
	switch {
	case err == nil:
		return wire.ErrCBOR
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}
