package world

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
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
	if f == Tree {
		object := Widget
		if name == TreePod {
			object = SmallPod
		}
		return Codec{f, "Widget", schema.GroupVersion{Group: "example.com", Version: "v1"}, "widgets", object, Kind{}.Order}
	}
	kind := Pods{PerSet: perSet}.Kind("Pod")
	if name != "" && name != kind.Name {
		kind = KindOf(name)
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

// State is a collection at a version, as it is sent.
type State struct {
	Codec
	Items   iter.Seq[[]byte] // encoded
	Version string
	Apart   bool // each initial event is a write of its own, as an API server's
}

// Send answers a LIST, or a WATCH with the initial events that it asks for. A watch ends with its
// request, or when follow, which sends on it and may be nil, returns false.
func (s State) Send(w http.ResponseWriter, r *http.Request, follow func(Stream) (goesOn bool)) {
	out := Stream{bufio.NewWriterSize(w, 256<<10), s.Codec, w.(http.Flusher)}
	if r.URL.Query().Get("watch") != "true" {
		w.Header().Set("Content-Type", s.Form.ContentType())
		s.List(func(b []byte) { _, _ = out.Write(b) })
		_ = out.Writer.Flush()
		return
	}
	w.Header().Set("Content-Type", s.Form.WatchType())
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for item := range s.Items {
			s.Event(out, watch.Added, item)
			if s.Apart {
				_ = out.Writer.Flush()
			}
		}
		s.bookmark(out)
	}
	out.Flush()
	if follow == nil || follow(out) {
		<-r.Context().Done()
	}
}

// Stream is an open watch.
type Stream struct {
	*bufio.Writer
	Codec  Codec
	socket http.Flusher
}

// Flush sends what was written.
func (s Stream) Flush() {
	_ = s.Writer.Flush()
	s.socket.Flush()
}

// List writes the parts of a LIST one by one.
func (s State) List(write func([]byte)) {
	if s.Form != Protobuf {
		write(fmt.Appendf(nil, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"%s"},"items":[`, s.Kind, s.Codec.Version, s.Version))
		separator := ""
		for item := range s.Items {
			write([]byte(separator))
			write(item)
			separator = ","
		}
		write([]byte("]}\n"))
		return
	}
	meta, _ := (&metav1.ListMeta{ResourceVersion: s.Version}).Marshal()
	meta = field(1, meta)
	size := len(meta)
	for item := range s.Items {
		size += len(head(2, len(item))) + len(item)
	}
	write(append(s.envelope(s.Kind+"List"), head(2, size)...))
	write(meta)
	for item := range s.Items {
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

// bookmark ends the initial events.
func (s State) bookmark(w io.Writer) {
	if s.Form == Protobuf {
		meta := &metav1.ObjectMeta{ResourceVersion: s.Version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}
		data, _ := meta.Marshal()
		s.Event(w, watch.Bookmark, field(1, data)) // metadata is the first field of every kind
		return
	}
	s.Event(w, watch.Bookmark, fmt.Appendf(nil, `{"metadata":{"resourceVersion":"%s","annotations":{"%s":"true"}}}`, s.Version, metav1.InitialEventsAnnotationKey))
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
