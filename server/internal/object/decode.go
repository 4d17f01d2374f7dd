package object

import (
	"encoding/json"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Decode reads a JSON document into an object. If strict, it also returns the objections of a
// strict reader: keys that are there twice, and fields that the type does not have. Such a document
// is read all the same.
func Decode(doc []byte, into any, strict bool) (objections []error, err error) {
	if u, ok := into.(runtime.Unstructured); ok {
		return decodeDocument(doc, u, strict)
	}
	if !strict {
		return nil, utiljson.Unmarshal(doc, into)
	}
	return strictjson.UnmarshalStrict(doc, into)
}

// decodeDocument reads a document of any type; its metadata is that of every object.
func decodeDocument(doc []byte, into runtime.Unstructured, strict bool) (objections []error, err error) {
	content := map[string]any{}
	if strict {
		objections, err = strictjson.UnmarshalStrict(doc, &content)
	} else {
		err = utiljson.Unmarshal(doc, &content)
	}
	if err != nil {
		return nil, err
	}
	if kind, _ := content["kind"].(string); kind == "" {
		return nil, errors.New("the document names no kind")
	}
	unknown, err := tidyMetadata(content, strict)
	into.SetUnstructuredContent(content)
	return append(objections, unknown...), err
}

// Tidy drops empty fields from the metadata of a document, as decoding does. Other objects have
// nothing to drop.
func Tidy(obj any) error {
	if u, ok := obj.(runtime.Unstructured); ok {
		_, err := tidyMetadata(u.UnstructuredContent(), false)
		return err
	}
	return nil
}

// tidyMetadata checks the types of the metadata, and drops empty fields and those that no object
// has.
func tidyMetadata(content map[string]any, strict bool) (objections []error, err error) {
	given, ok := content["metadata"]
	if !ok {
		return nil, nil
	}
	doc, err := json.Marshal(map[string]any{"metadata": given})
	if err != nil {
		return nil, err
	}
	var typed struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if objections, err = strictjson.UnmarshalStrict(doc, &typed, strictjson.DisallowUnknownFields); err != nil {
		return nil, err
	}
	tidy, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed.Metadata)
	if err != nil {
		return nil, err
	}
	if typed.Metadata.CreationTimestamp.IsZero() {
		delete(tidy, "creationTimestamp")
	}
	content["metadata"] = tidy
	if !strict {
		objections = nil
	}
	return objections, nil
}

// Twice returns an objection for each key that is there twice in a YAML document.
func Twice(doc []byte) (objections []error) {
	_, err := yaml.YAMLToJSONStrict(doc)
	if err == nil {
		return nil
	}
	for line := range strings.Lines(strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n")) {
		objections = append(objections, errors.New(strings.TrimSpace(line)))
	}
	return objections
}
