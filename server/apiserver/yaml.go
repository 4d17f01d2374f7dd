package apiserver

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/object"
)

// yamlEncoding is YAML, made from JSON and read as JSON. Like the API server's, it has no streams.
type yamlEncoding struct{ jsonEncoding }

func (yamlEncoding) contentType(stream bool) string {
	if stream {
		return ""
	}
	return "application/yaml"
}

func (y yamlEncoding) document(kind metav1.TypeMeta, obj runtime.Object) ([]byte, error) {
	doc, err := y.jsonEncoding.document(kind, obj)
	if err != nil {
		return nil, err
	}
	return toYAML(doc)
}

// list holds the whole list twice, since YAML is written by indentation.
func (y yamlEncoding) list(w *bufio.Writer, l list) error {
	var whole bytes.Buffer
	out := bufio.NewWriter(&whole)
	err := y.jsonEncoding.list(out, l)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return err
	}
	doc, err := toYAML(whole.Bytes())
	if err == nil {
		_, err = w.Write(doc)
	}
	return err
}

func (y yamlEncoding) read(doc []byte, into any, strict bool) (kind metav1.TypeMeta, objections []error, err error) {
	asJSON, err := yaml.YAMLToJSON(doc)
	if err != nil {
		return kind, nil, apierror.BadRequest("the body of the request is not a YAML document")
	}
	if strict {
		objections = object.Twice(doc)
	}
	kind, more, err := y.jsonEncoding.read(asJSON, into, strict)
	return kind, append(objections, more...), err
}

// toYAML converts a JSON document. Characters that YAML does not let stand as they are, such as a
// DEL in a string, are escaped first.
func toYAML(doc []byte) ([]byte, error) {
	var escaped strings.Builder
	for _, r := range string(doc) {
		switch {
		case r == 0x7f || 0x80 <= r && r < 0xa0 && r != 0x85 || r == 0xfeff || r == 0xfffe || r == 0xffff:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		default:
			escaped.WriteRune(r)
		}
	}
	return yaml.JSONToYAML([]byte(escaped.String()))
}
