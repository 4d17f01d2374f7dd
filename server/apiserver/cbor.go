package apiserver

import (
	"bufio"
	"encoding/binary"
	stdjson "encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/wire"
	"github.com/tributary-go/tributary/server/internal/apierror"
)

// cborEncoding is CBOR (KEP-4222): a watch is a sequence of data items (RFC 8742).
type cborEncoding struct{}

const (
	cborType     = "application/cbor"
	cborSequence = "application/cbor-seq"
)

func (cborEncoding) contentType(stream bool) string {
	if stream {
		return cborSequence
	}
	return cborType
}

func (cborEncoding) carries(representation, any) bool { return true }

func (cborEncoding) document(kind metav1.TypeMeta, obj runtime.Object) ([]byte, error) {
	if obj.GetObjectKind().GroupVersionKind().Empty() {
		obj = obj.DeepCopyObject()
		obj.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	}
	item, err := direct.Marshal(content(obj))
	return append([]byte(wire.CBORMagic), item...), err
}

func (cborEncoding) appendItem(to []byte, item any) ([]byte, error) {
	doc, err := direct.Marshal(content(item))
	if to == nil {
		return doc, err
	}
	return append(to, doc...), err
}

// list writes the members of JSON's lists, in their order.
func (cborEncoding) list(w *bufio.Writer, l list) error {
	members := byte(4)
	items := "items"
	if l.columns != nil {
		members, items = 5, "rows"
	}
	meta, err := direct.Marshal(l.metadata())
	if err != nil {
		return err
	}
	doc := append([]byte(wire.CBORMagic), mapOf+members)
	doc = appendText(appendText(doc, "kind"), l.kind.Kind)
	doc = appendText(appendText(doc, "apiVersion"), l.kind.APIVersion)
	doc = append(appendText(doc, "metadata"), meta...)
	if l.columns != nil {
		columns, err := direct.Marshal(l.columns)
		if err != nil {
			return err
		}
		doc = append(appendText(doc, "columnDefinitions"), columns...)
	}
	doc = binary.BigEndian.AppendUint32(append(appendText(doc, items), arrayOf32Bits), uint32(l.size))
	if _, err := w.Write(doc); err != nil {
		return err
	}
	_, err = l.write(w, "")
	return err
}

func (cborEncoding) frame(event watch.EventType, doc []byte) ([]byte, error) {
	item := append([]byte(wire.CBORMagic), mapOf+2)
	item = appendText(appendText(item, "type"), string(event))
	return append(appendText(item, "object"), doc...), nil
}

// read decodes by way of JSON: its decoder ignores fields that the type does not have. In JSON,
// bytes that are not UTF-8 become U+FFFD, and 1.0 becomes 1.
func (cborEncoding) read(doc []byte, into any, strict bool) (metav1.TypeMeta, []error, error) {
	var tree any
	err := direct.Unmarshal(doc, &tree)
	text, unwritable := stdjson.Marshal(tree)
	if err != nil || unwritable != nil {
		return metav1.TypeMeta{}, nil, apierror.BadRequest("the body of the request is not CBOR")
	}
	return jsonEncoding{}.read(text, into, strict)
}

// content is the form of a value that the encoder gets.
func content(value any) any {
	if u, ok := value.(runtime.Unstructured); ok {
		return u.UnstructuredContent()
	}
	return value
}

// The heads of data items (RFC 8949, 3): a map of few members, and an array of many elements.
const (
	mapOf         = 0xa0
	arrayOf32Bits = 0x9a
)

// appendText appends a text as the API server writes it, which is as bytes.
func appendText(doc []byte, text string) []byte {
	item, _ := direct.Marshal(text) // a text has no error
	return append(doc, item...)
}
