package listwatch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/store"
)

// A JSON list is one object whose items are read one at a time; a JSON watch is a sequence of objects, each of them
// {"type": …, "object": …}. Splitting follows brackets and strings only; each value is then decoded, or where nobody
// wants it validated, as a whole.

func isJSONStart(b []byte) bool { return b[0] == '{' || isSpace(b[0]) }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// jsonList reads a list, item by item. Its fields may come in any order.
func (d *decoder[T]) jsonList(r *bufio.Reader, yield func(T, error) bool) (meta metav1.ListMeta, err error) {
	in := &jsonReader{r: r, limit: d.limit}
	var head metav1.TypeMeta
	listed := false
	err = in.object(func(key string) error {
		switch key {
		case "kind":
			if err := in.decode(key, &head.Kind); err != nil {
				return err
			}
			return d.checkList(head.Kind)
		case "apiVersion":
			return in.decode(key, &head.APIVersion)
		case "metadata":
			return in.decode(key, &meta)
		case "items":
			if listed {
				return errNotJSON // the last one would count, and the items of the first are out already
			}
			listed = true
			return in.array(func() error { return d.jsonItem(in, head, yield) })
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

func (d *decoder[T]) jsonItem(in *jsonReader, list metav1.TypeMeta, yield func(T, error) bool) error {
	data, err := in.value()
	if err != nil {
		return err
	}
	gvk := itemKind(list.APIVersion, list.Kind)
	if gvk.Kind == "" {
		gvk.Kind = d.kind
	}
	obj, err := d.held.item(jsonIdentity, data, func() (T, error) { return d.jsonObject(data, gvk) })
	if err != nil {
		var none T
		obj, err = none, &DecodeError{Op: "list", Object: d.keyIn(data, true), Err: err}
	}
	if !yield(obj, err) {
		return errStopped
	}
	return nil
}

// jsonFrames are the events of a watch.
type jsonFrames[T store.Object] struct{ in jsonReader }

// waits is never true: whether a value has come whole cannot be seen without scanning it, which is a good part of the work.
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
	f := frame[T]{json: true}
	err = eachMember(data, func(key, value []byte) (err error) {
		switch string(key) {
		case "type":
			var event []byte
			event, err = unquote(value)
			f.event = eventName(event)
		case "object":
			f.object = value
		default:
			err = valid(value)
		}
		return err
	})
	return f, err
}

// eachMember takes an object in memory apart without copying the values.
func eachMember(data []byte, do func(key, value []byte) error) error {
	next := func(want byte) bool {
		data = bytes.TrimLeft(data, " \n\r\t")
		if len(data) == 0 || data[0] != want {
			return false
		}
		data = data[1:]
		return true
	}
	value := func() []byte {
		data = bytes.TrimLeft(data, " \n\r\t")
		var s jsonScanner
		n, _ := s.feed(data)
		value := data[:n]
		data = data[n:]
		return value
	}
	if !next('{') {
		return errNotJSON
	}
	for first := true; !next('}'); first = false {
		if !first && !next(',') {
			return errNotJSON
		}
		key, err := unquote(value())
		if err != nil || !next(':') {
			return errNotJSON
		}
		if err := do(key, value()); err != nil {
			return err
		}
	}
	return nil
}

// unquote decodes a string, in place where it can; null is none.
func unquote(value []byte) ([]byte, error) {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return nil, errNotJSON
	}
	for _, c := range value[1 : len(value)-1] {
		if c < ' ' || c >= 0x7f || c == '\\' {
			var s string
			if kjson.UnmarshalCaseSensitivePreserveInts(value, &s) != nil {
				return nil, errNotJSON
			}
			return []byte(s), nil
		}
	}
	return value[1 : len(value)-1], nil
}

func valid(value []byte) error {
	if !json.Valid(value) {
		return errNotJSON
	}
	return nil
}

// jsonReader splits a stream into JSON values.
type jsonReader struct {
	r      *bufio.Reader
	limit  int
	buffer []byte // of value
}

// next skips white space and returns the next byte without reading it.
func (j *jsonReader) next() (byte, error) {
	for {
		b, err := j.r.ReadByte()
		if err != nil {
			return 0, err
		}
		if !isSpace(b) {
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
		return errNotJSON
	}
	_, err = j.r.Discard(1)
	return err
}

// object calls field for each key of an object, with the reader at the value, which field must read.
func (j *jsonReader) object(field func(key string) error) error {
	return j.members('{', '}', func() error {
		data, err := j.value()
		if err != nil {
			return err
		}
		key, err := unquote(data)
		if err != nil {
			return err
		}
		if err := j.expect(':'); err != nil {
			return err
		}
		return field(string(key))
	})
}

// array calls element for each element of an array, with the reader at it; null is an array of none.
func (j *jsonReader) array(element func() error) error {
	if b, err := j.next(); err == nil && b == 'n' {
		return j.skip()
	}
	return j.members('[', ']', element)
}

// members reads what stands between two brackets, separated by commas.
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

// value reads one value whole; it is valid until the next call.
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

// decode reads one value of the list itself.
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

// skip reads one value that nobody wants.
func (j *jsonReader) skip() error {
	value, err := j.value()
	if err != nil {
		return err
	}
	return valid(value)
}

// end reads the end of the stream: there is nothing after a list. Having seen it, HTTP keeps the connection.
func (j *jsonReader) end() error {
	_, err := j.next()
	switch err {
	case io.EOF:
		return nil
	case nil:
		return errNotJSON
	}
	return err
}

// scan hands over one value in the parts that the stream brings it in.
func (j *jsonReader) scan(part func([]byte) error) error {
	if _, err := j.next(); err != nil {
		return unexpected(err)
	}
	var s jsonScanner
	for {
		if _, err := j.r.Peek(1); err != nil {
			if err == io.EOF && s.inScalar {
				return nil // a number may end with the stream
			}
			return unexpected(err)
		}
		window, _ := j.r.Peek(j.r.Buffered())
		n, done := s.feed(window)
		if err := part(window[:n]); err != nil {
			return err
		}
		_, _ = j.r.Discard(n)
		if done {
			if !s.started {
				return errNotJSON
			}
			return nil
		}
	}
}

// jsonScanner finds the end of one JSON value: it follows brackets and strings, and nothing else.
type jsonScanner struct {
	depth    int
	inString bool
	escaped  bool
	inScalar bool // a number, true, false, null, or a string outside all brackets
	started  bool
}

// feed takes the next bytes and returns how many belong to the value, and whether it is complete.
func (s *jsonScanner) feed(b []byte) (n int, done bool) {
	for i := 0; i < len(b); i++ {
		c := b[i]
		if s.inString {
			if i, done = s.string(b, i); done && s.depth == 0 {
				return i + 1, true
			}
			continue
		}
		switch c {
		case '"':
			s.inString, s.started = true, true
		case '{', '[':
			if s.inScalar {
				return i, true
			}
			s.depth++
			s.started = true
		case '}', ']':
			if s.depth == 0 {
				return i, true
			}
			if s.depth--; s.depth == 0 {
				return i + 1, true
			}
		case ',', ':', ' ', '\n', '\r', '\t':
			if s.depth == 0 {
				return i, true
			}
		default:
			s.started = true
			s.inScalar = s.depth == 0
		}
	}
	return len(b), false
}

// string goes on inside a string from b[i], and returns where it ended or the last byte seen. Byte by byte, since
// bytes.IndexByte gained only a tenth here on a list of pods, whose strings are short.
func (s *jsonScanner) string(b []byte, i int) (last int, ended bool) {
	for ; i < len(b); i++ {
		if s.escaped {
			s.escaped = false
			continue
		}
		for i < len(b) && b[i] != '"' && b[i] != '\\' {
			i++
		}
		switch {
		case i == len(b):
		case b[i] == '"':
			s.inString = false
			return i, true
		default:
			s.escaped = true
		}
	}
	return len(b) - 1, false
}
