package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/bench/world"
)

// form is how objects come: an encoding and a kind.
type form string

const (
	protobuf form = "protobuf"
	jsonForm form = "json"
	tree     form = "unstructured" // JSON too, of a kind that has no Go type
)

// Versions of the collection; those of the objects are below.
const (
	firstVersion   = 2_000_000
	changedOffset  = 1_000_000 // of an object that the relist finds changed
	changedVersion = 3_000_000
	eventVersion   = 4_000_000
)

// codec makes bodies of objects that are encoded already.
type codec struct {
	form     form
	kind     string // in API terms
	version  schema.GroupVersion
	resource string
	object   func(i, version, state int) []byte // encoded without kind and apiVersion
	order    func(first, count int) []int       // in which objects come
}

func (s settings) codec(f form) codec {
	kind, ok := world.KindOf(s.kind)
	switch {
	case f == tree:
		object := world.Widget
		if s.kind == world.TreePod {
			object = world.SmallPod
		}
		return codec{f, "Widget", schema.GroupVersion{Group: "example.com", Version: "v1"}, "widgets", object, world.Kind{}.Order}
	case !ok && !slices.Contains([]string{"", "Pod", widget, world.TreePod}, s.kind):
		panic(fmt.Sprintf("there is no kind %q", s.kind)) // a row of our own
	case !ok:
		kind = world.Pods{PerSet: s.perSet}.Kind("Pod")
	}
	encode := func(object world.Object) ([]byte, error) { return object.Marshal() }
	if f == jsonForm {
		encode = func(object world.Object) ([]byte, error) { return json.Marshal(object) }
	}
	name, _, _ := strings.Cut(kind.Name, " ")
	return codec{f, name, kind.Version, kind.Resource, func(i, version, state int) []byte {
		data, err := encode(kind.Object(i, version, state))
		if err != nil {
			panic(err) // our own objects
		}
		return data
	}, kind.Order}
}

// path is where the collection is served.
func (c codec) path() string {
	if c.version.Group == "" {
		return "/api/" + c.version.String() + "/" + c.resource
	}
	return "/apis/" + c.version.String() + "/" + c.resource
}

func (f form) contentType() string {
	if f == protobuf {
		return runtime.ContentTypeProtobuf
	}
	return runtime.ContentTypeJSON
}

// list writes the parts of a LIST one by one.
func (c codec) list(items [][]byte, version string, write func([]byte)) {
	if c.form != protobuf {
		write(fmt.Appendf(nil, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"%s"},"items":[`, c.kind, c.version, version))
		for i, item := range items {
			if i > 0 {
				write([]byte{','})
			}
			write(item)
		}
		write([]byte("]}\n"))
		return
	}
	meta, _ := (&metav1.ListMeta{ResourceVersion: version}).Marshal()
	meta = field(1, meta)
	size := len(meta)
	for _, item := range items {
		size += len(head(2, len(item))) + len(item)
	}
	write(append(c.envelope(c.kind+"List"), head(2, size)...))
	write(meta)
	for _, item := range items {
		write(head(2, len(item)))
		write(item)
	}
	write([]byte{0x1a, 0, 0x22, 0})
}

// event is one frame of a WATCH. The object is written without copying it: the server must not be
// what is measured.
func (c codec) event(w io.Writer, kind watch.EventType, object []byte) {
	if c.form != protobuf {
		fmt.Fprintf(w, `{"type":"%s","object":{"kind":"%s","apiVersion":"%s",`, kind, c.kind, c.version)
		_, _ = w.Write(object[1:])
		_, _ = w.Write([]byte("}\n"))
		return
	}
	_, _ = w.Write(frame(kind, append(c.envelope(c.kind), head(2, len(object))...), len(object)))
	_, _ = w.Write(object)
}

// frame is the head of a frame that begins with these bytes of an envelope; rest more are to
// follow.
func frame(kind watch.EventType, enveloped []byte, rest int) []byte {
	raw := append(head(1, len(enveloped)+rest), enveloped...)
	object := append(head(2, len(raw)+rest), raw...)
	event := append(field(1, []byte(kind)), object...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event)+rest)), event...)
}

// bookmark ends the initial events.
func (c codec) bookmark(w io.Writer, version string) {
	if c.form == protobuf {
		meta := &metav1.ObjectMeta{ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
		data, _ := meta.Marshal()
		c.event(w, watch.Bookmark, field(1, data)) // metadata is the first field of every kind
		return
	}
	c.event(w, watch.Bookmark, fmt.Appendf(nil, `{"metadata":{"resourceVersion":"%s","annotations":{"%s":"true"}}}`, version, metav1.InitialEventsAnnotationKey))
}

// expired tells the reader to list again.
func (c codec) expired() []byte {
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"}
	if c.form == protobuf {
		data, _ := status.Marshal()
		return frame(watch.Error, append(envelope("v1", "Status"), field(2, data)...), 0)
	}
	data, _ := json.Marshal(status)
	return fmt.Appendf(nil, `{"type":"ERROR","object":%s}`+"\n", data)
}

func (c codec) envelope(kind string) []byte { return envelope(c.version.String(), kind) }

func envelope(api, kind string) []byte {
	data, _ := (&runtime.TypeMeta{APIVersion: api, Kind: kind}).Marshal()
	return append([]byte("k8s\x00"), field(1, data)...)
}

func head(number, size int) []byte {
	return binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(size))
}

func field(number int, value []byte) []byte { return append(head(number, len(value)), value...) }
