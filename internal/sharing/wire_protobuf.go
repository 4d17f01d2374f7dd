package sharing

import (
	"encoding/binary"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/wire"
)

// wireField is a field of a message on the wire.
type wireField struct {
	*field // nil if the plan does not know it
	number int
	format byte
	value  uint64 // of a varint
	start  int    // of its tag
	from   int    // of its bytes; of a run, of its first tag
	count  int    // of the fields in a run
}

// next splits off the field of b that begins at i, with all of its run, and returns its end: zero
// if the message is not of the usual form. The field before it had the number last.
func (p *plan) next(b []byte, i, last int) (f wireField, end int) {
	f.start = i
	tag := uint(b[i])
	i++
	if tag >= 0x80 {
		if i == len(b) || b[i] >= 0x80 || b[i] == 0 {
			return f, 0
		}
		tag = tag&0x7f | uint(b[i])<<7
		i++
	}
	f.number, f.format = int(tag>>3), byte(tag&7)
	if f.number < len(p.index) && p.index[f.number] != 0 {
		f.field = &p.fields[p.index[f.number]-1]
		if f.number == last || f.format != f.field.format && !f.free {
			return f, 0
		}
	}
	if f.number < last || f.number == 0 {
		return f, 0
	}
	f.from = i + 1
	switch {
	case i == len(b):
		return f, 0
	case f.format == wire.Bytes && b[i] < 0x80: // most fields
		if i = f.from + int(b[i]); i > len(b) {
			return f, 0
		}
	default:
		f.value, f.from, i = payloadOf(b, i, f.format)
	}
	if f.field != nil && f.isRun && i > 0 {
		f.from = f.start
		i, f.count = f.run(b, f.start, i)
	}
	return f, i
}

// run finds the end of a run whose first field is b[start:end]; zero if it has another form.
func (f *field) run(b []byte, start, end int) (last, count int) {
	for count = 1; end < len(b) && b[end] == b[start] && (f.head == 1 || end+1 < len(b) && b[end+1] == b[start+1]); count++ {
		_, _, next := payloadOf(b, end+f.head, b[start]&7)
		if next == 0 {
			return 0, 0
		}
		end = next
	}
	return end, count
}

// payloadOf reads the value of a field from b[at:]: a varint, or the bounds of its bytes. End is
// zero if it does not fit, or is a group.
func payloadOf(b []byte, at int, format byte) (value uint64, from, end int) {
	switch format {
	case wire.Varint, wire.Bytes:
		n := 1
		if at < len(b) && b[at] < 0x80 {
			value = uint64(b[at])
		} else if value, n = binary.Uvarint(b[min(at, len(b)):]); n <= 0 {
			return 0, 0, 0
		}
		if from = at + n; format == wire.Varint {
			return value, from, from
		}
		if value > uint64(len(b)-from) {
			return 0, 0, 0
		}
		return value, from, from + int(value)
	case wire.Fixed64:
		end = at + 8
	case wire.Fixed32:
		end = at + 4
	default:
		return 0, 0, 0
	}
	if end > len(b) {
		return 0, 0, 0
	}
	return 0, at, end
}

// occurrence splits the first field off a run, whose form is known.
func (f *field) occurrence(run []byte) (b, rest []byte) {
	if size := int(run[f.head]); size < 0x80 {
		from := f.head + 1
		return run[from : from+size], run[from+size:]
	}
	_, from, end := payloadOf(run, f.head, wire.Bytes)
	return run[from:end], run[end:]
}

// entryOf reads an entry of a map, of which both parts are length-delimited.
func entryOf(b []byte) (key, value []byte, ok bool) {
	if len(b) == 0 || b[0] != 1<<3|wire.Bytes {
		return nil, nil, false
	}
	_, from, end := payloadOf(b, 1, wire.Bytes)
	if end == 0 || end == len(b) || b[end] != 2<<3|wire.Bytes {
		return nil, nil, false
	}
	key = b[from:end]
	_, from, last := payloadOf(b, end+1, wire.Bytes)
	if last != len(b) {
		return nil, nil, false
	}
	return key, b[from:last], true
}

// scalar is how the values of a Go type are read from protobuf: from their bytes, or from a varint.
type scalar struct {
	format byte                                            // wire type
	set    func(to ref, b []byte, varint uint64) (ok bool) // ok is false if b has another form
	is     func(at ref, b []byte, varint uint64) bool
}

// scalarOf returns the scalar of a type; nil if it has none. The tag says whether a type has code
// of its own. To ask its pointer type would make that, and pointer types are never freed.
func scalarOf(t reflect.Type, tag reflect.StructTag) *scalar {
	switch {
	case t == timeType:
		return seconds
	case t == reflect.TypeFor[metav1.MicroTime]():
		return microseconds
	case t == reflect.TypeFor[[]byte]():
		return octets
	case strings.Contains(tag.Get("protobuf"), ",customtype="):
		return nil
	}
	return map[reflect.Kind]*scalar{
		reflect.String: characters, reflect.Bool: booleans, reflect.Int32: numbers32, reflect.Int64: numbers64,
	}[t.Kind()]
}

var (
	booleans  = number(func(n uint64) bool { return n != 0 })
	numbers32 = number(func(n uint64) int32 { return int32(n) })
	numbers64 = number(func(n uint64) int64 { return int64(n) })

	characters = &scalar{
		format: wire.Bytes,
		set:    func(to ref, b []byte, _ uint64) bool { *as[string](to) = string(b); return true },
		is:     func(at ref, b []byte, _ uint64) bool { return *as[string](at) == string(b) },
	}
	octets = &scalar{ // which are not nil, even if there are none
		format: wire.Bytes,
		set: func(to ref, b []byte, _ uint64) bool {
			*as[[]byte](to) = append(make([]byte, 0, len(b)), b...)
			return true
		},
		is: func(at ref, b []byte, _ uint64) bool {
			return as[ref](at).p != nil && string(*as[[]byte](at)) == string(b)
		},
	}
	seconds      = instant(func(s, _ int64) time.Time { return time.Unix(s, 0) })
	microseconds = instant(func(s, n int64) time.Time {
		return time.Unix(s, int64(time.Duration(int32(n)).Truncate(time.Microsecond)))
	})
)

func number[T comparable](of func(varint uint64) T) *scalar {
	return &scalar{
		format: wire.Varint,
		set:    func(to ref, _ []byte, n uint64) bool { *as[T](to) = of(n); return true },
		is:     func(at ref, _ []byte, n uint64) bool { return *as[T](at) == of(n) },
	}
}

// instant is a Timestamp of seconds and nanoseconds, as metav1.Time and MicroTime read it. Without
// bytes it is zero.
func instant(of func(seconds, nanoseconds int64) time.Time) *scalar {
	read := func(b []byte) (t time.Time, ok bool) {
		if len(b) == 0 {
			return t, true
		}
		seconds, nanoseconds, ok := timestampOf(b)
		if !ok {
			return t, false
		}
		return of(seconds, nanoseconds), true
	}
	return &scalar{
		format: wire.Bytes,
		set: func(to ref, b []byte, _ uint64) (ok bool) {
			*as[time.Time](to), ok = read(b)
			return ok
		},
		is: func(at ref, b []byte, _ uint64) bool {
			t, ok := read(b)
			return ok && *as[time.Time](at) == t
		},
	}
}

// timestampOf reads both numbers, of which the second one may be missing.
func timestampOf(b []byte) (seconds, nanoseconds int64, ok bool) {
	if b[0] != 1<<3|wire.Varint {
		return 0, 0, false
	}
	s, _, end := payloadOf(b, 1, wire.Varint)
	if end == 0 {
		return 0, 0, false
	}
	n := uint64(0)
	if b = b[end:]; len(b) > 0 {
		if b[0] != 2<<3|wire.Varint {
			return 0, 0, false
		}
		if n, _, end = payloadOf(b, 1, wire.Varint); end != len(b) {
			return 0, 0, false
		}
	}
	return int64(s), int64(n), true
}
