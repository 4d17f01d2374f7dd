package listwatch

import (
	"bufio"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/store"
)

// encoding is a wire format as a decoder reads it; each has a file of its own. The decoder knows
// events, kinds and what is held; an encoding knows bytes. It is safe for concurrent use.
type encoding[T store.Object] interface {
	// begins reports whether a body with these first bytes, one at least, is of this format.
	begins(start []byte, stream bool) bool
	// list reads a list item by item.
	list(r *bufio.Reader, yield func(T, error) bool) (metav1.ListMeta, error)
	// frames splits the stream of a watch.
	frames(r *bufio.Reader) (frames[T], error)

	// object decodes one object. Kind is what stands around it; data may be reused afterwards.
	// Changed is the UID of an object that is decoded beside its last state; empty for any other.
	object(data []byte, kind schema.GroupVersionKind, changed []byte) (T, error)
	// status decodes the Status of an ERROR event.
	status(data []byte, into *metav1.Status) error
	// identity reads which object this is, without decoding it. It returns nothing if the metadata
	// is not written as servers write it.
	identity(data []byte) identity
	// key names an object that could not be decoded, if that much of it can be read.
	key(data []byte) string
}

// encodings are all of them. The first bytes tell which one a server has chosen.
func (d *decoder[T]) encodings() []encoding[T] {
	return []encoding[T]{jsonEncoding[T]{d}, protobufEncoding[T]{d}, cborEncoding[T]{jsonEncoding[T]{d}}}
}

// encodingOf finds the encoding of a body by its first bytes.
func (d *decoder[T]) encodingOf(start []byte, stream bool) (encoding[T], error) {
	for _, e := range d.encodings() {
		if len(start) > 0 && e.begins(start, stream) {
			return e, nil
		}
	}
	return nil, errNoEncoding
}

// frame is one event of a watch before its object is decoded.
type frame[T store.Object] struct {
	event     string
	malformed error // why it could not be taken apart, though the frames around it are whole

	object []byte                  // the bytes of the object alone
	kind   schema.GroupVersionKind // what stands around them, if anything does
	sealed error                   // why they cannot be read

	identity identity // of the object, as far as it is needed and can be read
	held     counterpart[T]
}

// frames are those of one stream. What next returns is valid until it is called while nothing waits.
type frames[T store.Object] interface {
	next() (frame[T], error)
	waits() bool // whether the next one has come already
	close()
}

// eventName is the name of an event, without a string for each.
func eventName(name []byte) string {
	for _, known := range []watch.EventType{watch.Modified, watch.Added, watch.Deleted, watch.Bookmark, watch.Error} {
		if string(name) == string(known) {
			return string(known)
		}
	}
	return string(name)
}

// unexpected is for reads in the middle of something.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
