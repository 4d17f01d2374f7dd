package apiserver

import (
	"bufio"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/server/internal/apierror"
)

// encoding is a wire format. Each has a file of its own, and is a comparable value without state.
type encoding interface {
	// contentType is the media type of one document, or of the stream of a watch: empty if the
	// format has none.
	contentType(stream bool) string
	// carries reports whether objects like sample, which may be nil, have this form in a view.
	carries(view representation, sample any) bool
	// document is an object as a document of its own, which names its kind.
	document(kind metav1.TypeMeta, obj runtime.Object) ([]byte, error)
	// appendItem appends an item of a list, without the separator between items.
	appendItem(to []byte, item any) ([]byte, error)
	// list writes a list item by item.
	list(w *bufio.Writer, l list) error
	// frame is one event of a watch around a document.
	frame(event watch.EventType, document []byte) ([]byte, error)
	// read decodes a document into an object and returns the kind that the document names. If
	// strict, it also returns the objections of a strict reader: unknown fields, and keys that
	// are there twice.
	// Errors: 400 for a document of another form, 415 for a type that has no such form.
	read(document []byte, into any, strict bool) (kind metav1.TypeMeta, objections []error, err error)
}

// encodings are all of them, the default first.
var encodings = []encoding{jsonEncoding{}, yamlEncoding{}, protobufEncoding{}}

// encodingOf finds an encoding by the media type of one document.
func encodingOf(mediaType string) (encoding, bool) {
	i := slices.IndexFunc(encodings, func(e encoding) bool { return e.contentType(false) == mediaType })
	if i < 0 {
		return nil, false
	}
	return encodings[i], true
}

// mediaTypes are those in which objects like sample can be written.
func mediaTypes(sample any) (types []string) {
	for _, e := range encodings {
		if e.carries(asItself, sample) {
			types = append(types, e.contentType(false))
		}
	}
	return types
}

// decode reads a document of a media type into obj; see [encoding].
func decode(mediaType string, document []byte, obj any, strict bool) (metav1.TypeMeta, []error, error) {
	e, known := encodingOf(mediaType)
	if !known || !e.carries(asItself, obj) {
		return metav1.TypeMeta{}, nil, apierror.UnsupportedMedia(mediaTypes(obj)...)
	}
	return e.read(document, obj, strict)
}

// list is a list that is about to be written.
type list struct {
	kind    metav1.TypeMeta
	meta    metav1.ListMeta
	columns []metav1.TableColumnDefinition // of a table; its items are the rows
	untyped bool                           // a list of documents
	size    int
	item    func(i int) (any, error)
	append  func(to []byte, i int) ([]byte, error) // the encoding of an item, which is not kept
	items   itemEncodings
	zip     *compressor // of a long answer; nil if its client does not take it
}

// itemEncodings are [watchcache.Encodings] of some type.
type itemEncodings interface {
	Bytes(i int) ([]byte, error)
	Shared(i int) ([]byte, error)
	Run(i int) (end int, ok bool)
	OfRun(i, end int, form any, make func() (value any, bytes int64, err error)) (any, error)
}

// metadata is the list's metadata on the wire. A list of documents names its continue token even if
// it has none, as the API server has it.
func (l list) metadata() any {
	if !l.untyped {
		return l.meta
	}
	return struct {
		metav1.ListMeta `json:",inline"`
		Continue        string `json:"continue"`
	}{l.meta, l.meta.Continue}
}
