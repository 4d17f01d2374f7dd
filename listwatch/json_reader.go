package listwatch

import (
	"bufio"
	"fmt"
	"io"

	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/wire"
)

// jsonReader splits a stream into JSON values. Each byte is scanned once, also if the end of a
// value is sought before the value is read.
type jsonReader struct {
	fleeting bool // nothing is kept between objects
	r        *bufio.Reader
	own      *bufio.Reader // of a watch: r is this one, or a large one over it while events come
	limit    int

	scanner wire.JSONScanner // of the next value
	seen    int              // bytes of it, at the front of r's buffer
	whole   bool             // its end is there
	inner   int              // of the last value: the end of the first object in it
	buffer  []byte           // the front of a value that is too large for r
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
		text, err := wire.Unquote(data)
		if err != nil {
			return err
		}
		key := string(text)
		if err := j.expect(':'); err != nil {
			return err
		}
		return field(key)
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

// value reads one whole value. It is valid until the next read: to read a value for which waits is
// true reads nothing.
func (j *jsonReader) value() ([]byte, error) {
	if _, err := j.next(); err != nil {
		return nil, unexpected(err)
	}
	j.buffer = j.buffer[:0]
	for !j.ahead() {
		err := j.more()
		if err == io.EOF && j.scanner.InScalar {
			break // the stream's end may end a number
		}
		if err != nil {
			return nil, unexpected(err)
		}
	}
	started := j.scanner.Started
	data, err := j.taken()
	j.inner, j.scanner, j.whole = j.scanner.Inner, wire.JSONScanner{}, false
	if err == nil && !started {
		err = wire.ErrJSON
	}
	return data, err
}

// ahead scans what has arrived of the next value, and reports whether its end is there.
func (j *jsonReader) ahead() bool {
	if !j.whole {
		window, _ := j.r.Peek(j.r.Buffered())
		n, done := j.scanner.Feed(window[j.seen:])
		j.seen, j.whole = j.seen+n, done
	}
	return j.whole
}

// more reads more of a value of which all that has arrived is scanned.
func (j *jsonReader) more() (err error) {
	if j.r == j.own {
		j.r = largeReader(j.own)
	} else if j.seen == j.r.Size() {
		if _, err = j.taken(); err != nil {
			return err
		}
	}
	_, err = j.r.Peek(j.seen + 1)
	return err
}

// taken takes what is scanned of a value out of r.
func (j *jsonReader) taken() ([]byte, error) {
	if len(j.buffer)+j.seen > j.limit {
		return nil, tooLarge(j.limit)
	}
	data, _ := j.r.Peek(j.seen)
	_, _ = j.r.Discard(j.seen)
	j.seen = 0
	if len(j.buffer) > 0 || len(data) == j.r.Size() {
		j.buffer = append(j.buffer, data...)
		return j.buffer, nil
	}
	return data, nil
}

// waits reports whether the next value has arrived.
func (j *jsonReader) waits() bool {
	j.skipSpace()
	return j.r.Buffered() > 0 && j.ahead()
}

// skipSpace passes over white space that has arrived.
func (j *jsonReader) skipSpace() {
	window, _ := j.r.Peek(j.r.Buffered())
	n := 0
	for n < len(window) && wire.IsSpace(window[n]) {
		n++
	}
	_, _ = j.r.Discard(n)
}

// quiet gives memory back if nothing has arrived.
func (j *jsonReader) quiet() {
	j.skipSpace()
	if j.r.Buffered() == 0 {
		if j.buffer = spare(j.buffer); j.fleeting {
			j.buffer = nil
		}
		j.close()
	}
}

// close returns the large reader, which must be empty.
func (j *jsonReader) close() {
	if j.own != nil && j.r != j.own {
		putLargeReader(j.r, j.fleeting)
		j.r = j.own
	}
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
