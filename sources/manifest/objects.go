package manifest

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Objects returns a function that decodes manifests of any other kind, such as ConfigMaps or a
// custom resource. It reads all documents of a stream in JSON or YAML, and the items of a List or
// of the kind's own list. O is the type, or unstructured.Unstructured.
//
// Nothing is defaulted. Only the name is validated: there must be one, and no slash in it or in the
// namespace. Unknown fields are dropped. The resource version is dropped too: it would stay the
// same through all edits, and a store takes equal versions for equal states. A rejected part costs
// only itself. The function fits the package static; it holds no state.
func Objects[O any, T interface {
	*O
	metav1.Object
}](kind schema.GroupVersionKind) func(path string, data []byte) (objects []T, rejected []error) {
	list := kind.GroupVersion().WithKind(kind.Kind + "List")
	return func(from string, data []byte) (objects []T, rejected []error) {
		r := &run{path: from, data: data, kind: kind, list: list, limits: ours, keyOf: objectKey}
		r.object = func(at place, data []byte) {
			object := T(new(O))
			if err := decodeObject(data, object, kind); err != nil {
				r.reject(at, "", err)
				return
			}
			objects = append(objects, object)
		}
		if len(data) >= MaxSize {
			r.reject(place{}, "", ErrTooLarge)
		} else {
			r.stream(toUTF8(data))
		}
		for _, err := range r.rejected {
			rejected = append(rejected, err)
		}
		return objects, rejected
	}
}

// decodeObject reads an object with keys in their exact case. Types with an unmarshaler read
// themselves.
func decodeObject(data []byte, object metav1.Object, kind schema.GroupVersionKind) error {
	var err error
	if self, ok := object.(json.Unmarshaler); ok {
		err = self.UnmarshalJSON(withKind(data, kind))
	} else {
		err = utiljson.Unmarshal(data, object)
	}
	if err != nil {
		return jsonError(data, err)
	}
	if object.GetName() == "" {
		return fmt.Errorf("a %s needs a name", kind.Kind)
	}
	// The API server's rule for names of any kind. Keys are made of both.
	for field, name := range map[string]string{"name": object.GetName(), "namespace": object.GetNamespace()} {
		if wrong := path.IsValidPathSegmentName(name); len(wrong) > 0 {
			return fmt.Errorf("metadata.%s %s", field, wrong[0])
		}
	}
	object.SetResourceVersion("")
	return nil
}

// objectKey is the key of an object with a valid name.
func objectKey(namespace, name string) string {
	switch {
	case name == "", len(path.IsValidPathSegmentName(name)) > 0:
		return ""
	case namespace == "":
		return name
	case len(path.IsValidPathSegmentName(namespace)) > 0:
		return ""
	}
	return namespace + "/" + name
}

// withKind adds the kind, which an item of a list may leave out.
func withKind(data []byte, kind schema.GroupVersionKind) []byte {
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil || object == nil {
		return data // the error is its reader's
	}
	object["apiVersion"], _ = json.Marshal(kind.GroupVersion().String())
	object["kind"], _ = json.Marshal(kind.Kind)
	said, err := json.Marshal(object)
	if err != nil {
		return data
	}
	return said
}
