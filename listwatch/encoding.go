package listwatch

import (
	"bufio"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/internal/wire"
	"github.com/tributary-go/tributary/store"
)

// encoding is a wire format; each has a file of its own. The decoder knows events, kinds and held
// objects; an encoding knows bytes. It is safe for concurrent use.
//
// A new format is a file of its own, an entry in encodings and a media type in accepts.
type encoding[T store.Object] interface {
	// begins reports whether a body that starts with these bytes, at least one, is in this format.
	begins(start []byte, stream bool) bool
	list(r *bufio.Reader, items *items[T]) (metav1.ListMeta, error)
	// frames splits the stream of a watch.
	frames(r *bufio.Reader) (frames[T], error)

	// object decodes one object of a kind that is named around it; data may be reused afterwards.
	// last is that of an object which changes. The notes are for its next change.
	object(data []byte, kind schema.GroupVersionKind, last sharing.Last) (T, sharing.Notes, error)
	// status decodes the Status of an ERROR event.
	status(data []byte, into *metav1.Status) error
	// identity reads the object's identity without decoding it. It is empty if the metadata is not
	// in the usual form of servers.
	identity(data []byte) identity
	// lean cuts the managed fields out of an object, in place.
	lean(data []byte) []byte
	// key names an object that could not be decoded, if the name can be read.
	key(data []byte) string
}

func (d *decoder[T]) encodings() []encoding[T] {
	return []encoding[T]{jsonEncoding[T]{d}, protobufEncoding[T]{d}}
}

// maxStart is the number of bytes that tell the encoding of a list.
const maxStart = len(wire.Magic)

// encodingOf finds the encoding by the body's first bytes: servers choose it.
func (d *decoder[T]) encodingOf(start []byte, stream bool) (encoding[T], error) {
	for _, e := range d.encodings() {
		if len(start) > 0 && e.begins(start, stream) {
			return e, nil
		}
	}
	switch {
	case len(start) == 0:
		return nil, errNoBody
	case start[0] == '<':
		return nil, errPage
	}
	return nil, errNoEncoding
}

const (
	mediaJSON     = "application/json"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
	asMetadata    = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetaList    = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	// dropManaged asks the server to leave the managed fields out (KEP-5958, alpha in 1.38). Other
	// servers pass over the parameter, as seen with 1.36.3, and the decoder drops the fields.
	dropManaged = ";drop=metadata.managedFields"
)

// accepts returns the Accept headers: the best form first, a form that every server has last.
func accepts[T store.Object](d *decoder[T], o options) (list, watch string) {
	types := []string{mediaProtobuf, mediaJSON}
	if o.json || !d.protobuf {
		types = types[1:]
	}
	ofList, ofWatch := "", ""
	if _, metadata := any(d.new()).(*metav1.PartialObjectMetadata); metadata {
		ofList, ofWatch = asMetaList, asMetadata
	}
	if o.dropManaged {
		ofList, ofWatch = ofList+dropManaged, ofWatch+dropManaged
	}
	for _, media := range types {
		list, watch = list+media+ofList+",", watch+media+ofWatch+","
	}
	if ofList != "" { // a server without these forms sends whole objects
		return list + mediaJSON, watch + mediaJSON
	}
	return strings.TrimSuffix(list, ","), strings.TrimSuffix(watch, ",")
}

// frame is one event of a watch before its object is decoded.
type frame[T store.Object] struct {
	event     string
	malformed error // the error of splitting it, in a whole frame

	object []byte                  // the bytes of the object alone
	size   int                     // of the object on the wire
	kind   schema.GroupVersionKind // as named by the bytes around them, if at all
	sealed error                   // the error of reading them

	identity identity // of the object, if needed and readable
	held     counterpart[T]
	last     sharing.Last // of a change
}

// frames are the events of one stream. The result of next is valid until next is called while waits
// is false.
type frames[T store.Object] interface {
	next() (frame[T], error)
	waits() bool // whether the next frame has already arrived
	close()
}

// unexpected is for reads inside a value.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
