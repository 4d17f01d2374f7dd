package world

import (
	"bufio"
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
)

// Form is how objects come: an encoding and a kind.
type Form string

const (
	Protobuf Form = "protobuf"
	JSON     Form = "json"
	Tree     Form = "unstructured" // JSON too, of a kind that has no Go type
)

// WidgetKind is the kind of custom resources, as unstructured objects from JSON.
const WidgetKind = "Widget, unstructured"

// Codec makes bodies of objects that are encoded already.
type Codec struct {
	Form     Form
	Kind     string // in API terms
	Version  schema.GroupVersion
	Resource string
	Object   func(i, version, state int) []byte // encoded without kind and apiVersion
	Order    func(first, count int) []int       // in which objects come
}

// CodecOf is that of the kind with this name: of pods, perSet of a ReplicaSet, if it is empty.
func CodecOf(name string, perSet int, f Form) Codec {
	kind, ok := KindOf(name)
	switch {
	case f == Tree:
		object := Widget
		if name == TreePod {
			object = SmallPod
		}
		return Codec{f, "Widget", schema.GroupVersion{Group: "example.com", Version: "v1"}, "widgets", object, Kind{}.Order}
	case !ok && !slices.Contains([]string{"", "Pod", WidgetKind, TreePod}, name):
		panic(fmt.Sprintf("there is no kind %q", name)) // a row of our own
	case !ok:
		kind = Pods{PerSet: perSet}.Kind("Pod")
	}
	encode := func(object Object) ([]byte, error) { return object.Marshal() }
	if f == JSON {
		encode = func(object Object) ([]byte, error) { return json.Marshal(object) }
	}
	of, _, _ := strings.Cut(kind.Name, " ")
	return Codec{f, of, kind.Version, kind.Resource, func(i, version, state int) []byte {
		data, err := encode(kind.Object(i, version, state))
		if err != nil {
			panic(err) // our own objects
		}
		return data
	}, kind.Order}
}

// Path is where the collection is served.
func (c Codec) Path() string {
	if c.Version.Group == "" {
		return "/api/" + c.Version.String() + "/" + c.Resource
	}
	return "/apis/" + c.Version.String() + "/" + c.Resource
}

// ContentType is of a list; [Form.WatchType] of a watch.
func (f Form) ContentType() string {
	if f == Protobuf {
		return runtime.ContentTypeProtobuf
	}
	return runtime.ContentTypeJSON
}

// WatchType is the content type of a watch.
func (f Form) WatchType() string {
	return strings.Replace(f.ContentType(), "protobuf", "protobuf;stream=watch", 1)
}

// List writes the parts of a LIST one by one.
func (c Codec) List(items [][]byte, version string, write func([]byte)) {
	if c.Form != Protobuf {
		write(fmt.Appendf(nil, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"%s"},"items":[`, c.Kind, c.Version, version))
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
	write(append(c.envelope(c.Kind+"List"), head(2, size)...))
	write(meta)
	for _, item := range items {
		write(head(2, len(item)))
		write(item)
	}
	write([]byte{0x1a, 0, 0x22, 0})
}

// Event is one frame of a WATCH. The object is written without copying it: the server must not be
// what is measured.
func (c Codec) Event(w io.Writer, kind watch.EventType, object []byte) {
	if c.Form != Protobuf {
		fmt.Fprintf(w, `{"type":"%s","object":{"kind":"%s","apiVersion":"%s",`, kind, c.Kind, c.Version)
		_, _ = w.Write(object[1:])
		_, _ = w.Write([]byte("}\n"))
		return
	}
	_, _ = w.Write(frame(kind, append(c.envelope(c.Kind), head(2, len(object))...), len(object)))
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

// Initial writes the initial events of a watch list.
func (c Codec) Initial(w io.Writer, items [][]byte, version string) {
	out := bufio.NewWriterSize(w, 256<<10)
	for _, item := range items {
		c.Event(out, watch.Added, item)
	}
	c.Bookmark(out, version)
	_ = out.Flush()
}

// Bookmark ends the initial events.
func (c Codec) Bookmark(w io.Writer, version string) {
	if c.Form == Protobuf {
		meta := &metav1.ObjectMeta{ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
		data, _ := meta.Marshal()
		c.Event(w, watch.Bookmark, field(1, data)) // metadata is the first field of every kind
		return
	}
	c.Event(w, watch.Bookmark, fmt.Appendf(nil, `{"metadata":{"resourceVersion":"%s","annotations":{"%s":"true"}}}`, version, metav1.InitialEventsAnnotationKey))
}

// Expired tells the reader to list again.
func (c Codec) Expired() []byte {
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"}
	if c.Form == Protobuf {
		data, _ := status.Marshal()
		return frame(watch.Error, append(envelope("v1", "Status"), field(2, data)...), 0)
	}
	data, _ := json.Marshal(status)
	return fmt.Appendf(nil, `{"type":"ERROR","object":%s}`+"\n", data)
}

func (c Codec) envelope(kind string) []byte { return envelope(c.Version.String(), kind) }

func envelope(api, kind string) []byte {
	data, _ := (&runtime.TypeMeta{APIVersion: api, Kind: kind}).Marshal()
	return append([]byte("k8s\x00"), field(1, data)...)
}

func head(number, size int) []byte {
	return binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(size))
}

func field(number int, value []byte) []byte { return append(head(number, len(value)), value...) }
