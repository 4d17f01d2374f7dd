package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/podapi"
)

// Ten megabytes of text may take a hundred times as much memory: an empty container is two or three
// bytes of text and a struct of a kilobyte. So structs are counted before they are decoded.
const (
	// maxExpanded bounds a document with its aliases resolved. The YAML parser bounds the number of
	// aliases, but not the size of one.
	maxExpanded = 4 * MaxSize
	// maxObjects bounds the structs of a document. Real manifests have more than twenty bytes for
	// one.
	maxObjects = MaxSize / 20
)

// limits are those that the kubelet does not have. Zero is none.
type limits struct {
	values int // of any type in a document
	object int // structs in one object
	// anyTwin: of two keys that are equal in JSON, either counts.
	anyTwin bool
}

// ours are generous: the API server takes objects of up to 3 MiB, and a large pod has some hundred
// structs.
var ours = limits{values: MaxSize / 10, object: 1 << 15}

var errVersion = errors.New("apiVersion and kind must be a version and a kind, as in v1 and Pod")

var (
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	podListKind = corev1.SchemeGroupVersion.WithKind("PodList")
	listKind    = corev1.SchemeGroupVersion.WithKind("List")
)

// openDocument returns a document as JSON, and its kind.
func (l limits) openDocument(d *document) ([]byte, schema.GroupVersionKind, error) {
	data, err := l.toJSON(d)
	if err != nil {
		return nil, schema.GroupVersionKind{}, err
	}
	kind, err := kindOf(data)
	return data, kind, err
}

// toJSON returns a document as JSON. A manifest that begins with a brace begins with JSON. All else
// follows the rules of YAML 1.1: "on" is a boolean and 0600 an octal number. A brace after a marker
// begins YAML too, as for the kubelet. It may be JSON that YAML cannot read, with half a surrogate
// pair.
func (l limits) toJSON(d *document) ([]byte, error) {
	data := d.data
	if brace := yaml.IsJSONBuffer(data); !brace || d.first > 1 {
		converted, err := l.fromYAML(d)
		switch {
		case err == nil:
			data = converted
		case !brace || !json.Valid(data):
			return nil, err
		}
	}
	if structs, values := jsonWeight(data); structs > maxObjects || l.values > 0 && values > l.values {
		return nil, ErrTooLarge
	}
	return data, nil
}

// fromYAML converts the first value of a document, and notes the text after it.
func (l limits) fromYAML(d *document) ([]byte, error) {
	if l.values > 0 && yamlMarks(d.data) > l.values {
		return nil, ErrTooLarge
	}
	parser := yamlv2.NewDecoder(bytes.NewReader(d.data))
	var tree any
	if err := parser.Decode(&tree); err != nil && !errors.Is(err, io.EOF) {
		return nil, yamlError(err)
	}
	converter := jsonConverter{budget: maxExpanded, anyTwin: l.anyTwin}
	tree, err := converter.convert(tree)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, errors.New("holds a value that JSON has not")
	}
	var more any
	if err := parser.Decode(&more); !errors.Is(err, io.EOF) {
		d.rest = &syntaxError{line: yamlErrorLine(err), why: "what follows the object is not read: begin a document with ---"}
		if d.rest.line > 0 && strings.Contains(err.Error(), "<document start>") {
			d.rest.line++ // the parser counts lines from 0, other than its scanner
		}
	}
	return data, nil
}

// checkObject refuses a JSON object with too many structs.
func (l limits) checkObject(data []byte) error {
	if structs, _ := jsonWeight(data); l.object > 0 && structs > l.object {
		return ErrTooLarge
	}
	return nil
}

// yamlMarks counts the signs that may begin a value of a YAML document. Signs in text count too,
// but text is long.
func yamlMarks(data []byte) (n int) {
	for i, c := range data {
		switch c {
		case '\n', '\r', ',', '[', '{':
			n++
		case '-', '?':
			if i+1 < len(data) && (data[i+1] == ' ' || data[i+1] == '\t') {
				n++
			}
		}
	}
	return n
}

// jsonWeight counts, in JSON, the objects and nulls that may become a struct, and roughly all
// values.
func jsonWeight(data []byte) (structs, values int) {
	text := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{', c == 'n': // of null
			structs++
		case c == ',', c == '[':
			values++
		}
	}
	return structs, values
}

// kindOf reads the kind of a document. Keys may be in upper or lower case, as in the API machinery.
func kindOf(data []byte) (schema.GroupVersionKind, error) {
	var meta struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return schema.GroupVersionKind{}, jsonError(data, err)
	}
	version, err := schema.ParseGroupVersion(meta.APIVersion)
	if err != nil {
		return schema.GroupVersionKind{}, errVersion
	}
	return version.WithKind(meta.Kind), nil
}

// decoded is a pod as it was read.
type decoded struct {
	pod     *corev1.Pod
	unknown unknownFields // that were dropped
	data    []byte        // in JSON; nil: it was protobuf
}

// newerOf is what the pod has in fields that the build may have no type for.
func (d *decoded) newerOf(release podapi.Release) podapi.Newer {
	data := d.data
	if data == nil && release >= podapi.R137 {
		data, _ = json.Marshal(d.pod) // what protobuf can hold, JSON can
	}
	return release.NewerOf(data)
}

// decodePod reads a pod, with keys in their exact case. Unknown fields are dropped. So are the
// fields that the release lacks, if this build has another type for them.
func decodePod(data []byte, release podapi.Release) (decoded, error) {
	d := decoded{pod: &corev1.Pod{}, data: data}
	faults, err := kjson.UnmarshalStrict(data, d.pod, kjson.DisallowUnknownFields)
	if err != nil {
		if rest, cut := release.CutNewer(data); len(cut) > 0 {
			d, err := decodePod(rest, release)
			d.unknown = append(d.unknown, cut...)
			return d, err
		}
		return decoded{}, jsonError(data, err)
	}
	for _, fault := range faults {
		if field, ok := fault.(kjson.FieldError); ok {
			d.unknown = append(d.unknown, field.FieldPath())
		}
	}
	return d, nil
}

// decodeItems reads a list down to its items, so that a bad item leaves the others readable.
func decodeItems(data []byte) ([]json.RawMessage, error) {
	var list struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := utiljson.Unmarshal(data, &list); err != nil {
		return nil, jsonError(data, err)
	}
	return list.Items, nil
}
