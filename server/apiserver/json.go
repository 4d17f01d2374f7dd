package apiserver

import (
	"bufio"
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/object"
)

// jsonEncoding is JSON: a watch is one line for each event.
type jsonEncoding struct{}

const jsonType = "application/json"

func (jsonEncoding) contentType(bool) string { return jsonType }

func (jsonEncoding) carries(representation, any) bool { return true }

func (jsonEncoding) document(kind metav1.TypeMeta, obj runtime.Object) ([]byte, error) {
	doc, err := stdjson.Marshal(obj)
	if err != nil || !obj.GetObjectKind().GroupVersionKind().Empty() {
		return doc, err
	}
	return append([]byte(fmt.Sprintf(`{"kind":%q,"apiVersion":%q,`, kind.Kind, kind.APIVersion)), doc[1:]...), nil
}

func (jsonEncoding) appendItem(to []byte, item any) ([]byte, error) {
	w := bytes.NewBuffer(to)
	if err := stdjson.NewEncoder(w).Encode(item); err != nil {
		return to, err
	}
	return bytes.TrimSuffix(w.Bytes(), []byte("\n")), nil // which ends each document of a stream
}

// list writes {"kind":…,"apiVersion":…,"metadata":…,"items":[…]}; a table has columns and rows
// instead.
func (jsonEncoding) list(w *bufio.Writer, l list) error {
	opening := struct {
		metav1.TypeMeta   `json:",inline"`
		Metadata          any                            `json:"metadata"`
		ColumnDefinitions []metav1.TableColumnDefinition `json:"columnDefinitions,omitempty"`
	}{l.kind, l.metadata(), l.columns}
	items := `,"items":[`
	if l.columns != nil {
		items = `,"rows":[`
	}
	doc, err := stdjson.Marshal(opening)
	if err != nil {
		return err
	}
	// bufio.Writer keeps its first error: Flush returns it.
	_, _ = w.WriteString(strings.TrimSuffix(string(doc), "}") + items)
	if _, err := l.write(w, ","); err != nil {
		return err
	}
	_, err = w.WriteString("]}\n")
	return err
}

func (jsonEncoding) frame(event watch.EventType, doc []byte) ([]byte, error) {
	line := make([]byte, 0, len(doc)+len(`{"type":"","object":}`)+len(event)+1)
	line = append(append(append(line, `{"type":"`...), event...), `","object":`...)
	return append(append(line, doc...), "}\n"...), nil
}

func (jsonEncoding) read(doc []byte, into any, strict bool) (kind metav1.TypeMeta, objections []error, err error) {
	if err := object.CheckDepth(doc); err != nil {
		return kind, nil, err
	}
	if err := json.Unmarshal(doc, &kind); err != nil {
		return kind, nil, apierror.BadRequest("the body of the request is not a JSON object")
	}
	objections, err = object.Decode(doc, into, strict)
	var mismatch *stdjson.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		return kind, nil, apierror.BadRequest("%v", mismatch) // names the field and its type
	case err != nil:
		return kind, nil, apierror.BadRequest("the body of the request does not fit the type: a field has a value of the wrong form")
	}
	return kind, objections, nil
}
