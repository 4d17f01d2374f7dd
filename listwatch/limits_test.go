package listwatch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tributary-go/tributary/internal/wire"
)

const mebibyte = 1 << 20

func podDecoder(limit int) *decoder[*corev1.Pod] {
	d := newDecoder[corev1.Pod]()
	d.share("", nil)
	d.limit = limit
	return d
}

// decodeList returns a list's names and errors; the last error may be the list's own.
func decodeList(d *decoder[*corev1.Pod], body io.Reader) (names []string, errs []error) {
	_, err := d.list(io.NopCloser(body), func(obj *corev1.Pod, err error) bool {
		if err != nil {
			errs = append(errs, err)
		} else {
			names = append(names, obj.Name)
		}
		return true
	})
	if err != nil {
		errs = append(errs, err)
	}
	return names, errs
}

func decodeWatch(d *decoder[*corev1.Pod], body io.Reader) (names []string, errs []error) {
	err := d.watch(body, false, func(event Event[*corev1.Pod], err error) bool {
		if err != nil {
			errs = append(errs, err)
		} else if event.Object != nil {
			names = append(names, event.Object.Name)
		}
		return true
	})
	if err != nil {
		errs = append(errs, err)
	}
	return names, errs
}

// field encodes a length-delimited field of a protobuf message.
func field(number int, value []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(number)<<3|wire.Bytes)
	return append(binary.AppendUvarint(out, uint64(len(value))), value...)
}

func TestObjectOverTheLimitEndsTheStream(t *testing.T) {
	const limit = mebibyte
	big := strings.Repeat("x", limit)
	item := func(name string) string { return `{"metadata":{"name":"` + name + `"}}` }
	event := func(name string) string { return `{"type":"ADDED","object":{"kind":"Pod",` + item(name)[1:] + `}` }
	protobufItem := func(name string) []byte { return field(wire.ListItems, field(1, field(1, []byte(name)))) }
	items := bytes.Join([][]byte{protobufItem("a"), protobufItem(big), protobufItem("c")}, nil)
	frame := func(size int) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(size)), make([]byte, size)...)
	}

	for name, read := range map[string]func() ([]string, []error){
		"JSON list": func() ([]string, []error) {
			return decodeList(podDecoder(limit), strings.NewReader(`{"items":[`+item("a")+`,`+item(big)+`,`+item("c")+`]}`))
		},
		"JSON list's other field": func() ([]string, []error) {
			return decodeList(podDecoder(limit), strings.NewReader(`{"items":[`+item("a")+`],"new":"`+big+`"}`))
		},
		"JSON watch": func() ([]string, []error) {
			return decodeWatch(podDecoder(limit), strings.NewReader(event("a")+event(big)+event("c")))
		},
		"protobuf list": func() ([]string, []error) {
			return decodeList(podDecoder(limit), strings.NewReader(wire.Magic+string(field(wire.UnknownRaw, items))))
		},
		"protobuf watch": func() ([]string, []error) {
			_, errs := decodeWatch(podDecoder(limit), bytes.NewReader(frame(limit+1)))
			return []string{"a"}, errs
		},
	} {
		t.Run(name, func(t *testing.T) {
			names, errs := read()
			require.Equal(t, []string{"a"}, names)
			require.Len(t, errs, 1)
			require.EqualError(t, errs[0], "one object is larger than the limit of 1 MiB: the stream is broken, or not a Kubernetes API server's")
		})
	}
}

// allocated returns the total bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestLengthThatLiesCostsNoMemory(t *testing.T) {
	d := podDecoder(maxObject)
	length := func(n uint64) []byte { return binary.AppendUvarint(nil, n) }
	list := func(parts ...[]byte) []byte { return append([]byte(wire.Magic), bytes.Join(parts, nil)...) }
	for name, read := range map[string]func() []error{
		"list": func() []error {
			_, errs := decodeList(d, bytes.NewReader(list([]byte{wire.UnknownRaw<<3 | wire.Bytes}, length(4<<30))))
			return errs
		},
		"item of 4 GiB": func() []error {
			_, errs := decodeList(d, bytes.NewReader(list([]byte{wire.UnknownRaw<<3 | wire.Bytes}, length(8<<30), []byte{wire.ListItems<<3 | wire.Bytes}, length(4<<30))))
			return errs
		},
		"item within the limit": func() []error {
			_, errs := decodeList(d, bytes.NewReader(list([]byte{wire.UnknownRaw<<3 | wire.Bytes}, length(8<<30), []byte{wire.ListItems<<3 | wire.Bytes}, length(maxObject))))
			return errs
		},
		"type": func() []error {
			_, errs := decodeList(d, bytes.NewReader(list([]byte{wire.UnknownTypeMeta<<3 | wire.Bytes}, length(maxObject))))
			return errs
		},
		"frame of 4 GiB": func() []error {
			_, errs := decodeWatch(d, strings.NewReader("\x20\xff\xff\xff"))
			return errs
		},
		"frame within the limit": func() []error {
			_, errs := decodeWatch(d, strings.NewReader("\x01\xff\xff\xff"))
			return errs
		},
	} {
		t.Run(name, func(t *testing.T) {
			var errs []error
			cost := allocated(func() { errs = read() })
			require.Len(t, errs, 1)
			require.Less(t, cost, uint64(4*mebibyte))
		})
	}
}

// Deep nesting is one object's fault: it is refused without a deep stack, and the next object
// comes.
func TestDeepNesting(t *testing.T) {
	for _, depth := range []int{100, 20_000, 1_000_000} {
		deep := strings.Repeat(`[`, depth) + strings.Repeat(`]`, depth)
		body := `{"items":[{"metadata":{"name":"a"},"x":` + deep + `},{"metadata":{"name":"b"}}]}`
		names, errs := decodeList(podDecoder(maxObject), strings.NewReader(body))
		require.Contains(t, names, "b")
		if depth > 10_000 { // the limit of Go's decoder and of Kubernetes'
			require.Len(t, errs, 1)
			var unusable *DecodeError
			require.ErrorAs(t, errs[0], &unusable)
		}
	}
	u := newDecoder[unstructured.Unstructured]()
	body := `{"items":[{"kind":"K","apiVersion":"v1","x":` + strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_000) + `}]}`
	var errs []error
	_, err := u.list(io.NopCloser(strings.NewReader(body)), func(_ *unstructured.Unstructured, err error) bool {
		errs = append(errs, err)
		return true
	})
	require.NoError(t, err)
	require.Len(t, errs, 1)
	require.Error(t, errs[0])
}

// oneByOne reads a byte at a time, so every value is split everywhere.
type oneByOne struct{ r io.Reader }

func (o oneByOne) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

func TestStringsAreFollowedAcrossReads(t *testing.T) {
	for _, value := range []string{``, `\\`, `\"`, `\\\"`, `}`, `\\\\`, `\u0022]`, strings.Repeat(`\\`, 9000), strings.Repeat(`x\"`, 9000)} {
		body := fmt.Sprintf(`{"items":[{"metadata":{"name":"a","annotations":{"k":"%s"}}},{"metadata":{"name":"b"}}]}`, value)
		for _, stream := range []io.Reader{strings.NewReader(body), oneByOne{strings.NewReader(body)}} {
			names, errs := decodeList(podDecoder(maxObject), stream)
			require.Empty(t, errs)
			require.Equal(t, []string{"a", "b"}, names)
		}
	}
}
