package manifest

import (
	"encoding/json"
	"errors"
	"strconv"

	yamlv2 "go.yaml.in/yaml/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// What is written in ten megabytes may take a hundred times that in memory: an empty container, in two or three bytes, is a
// struct of a kilobyte. So what there is of it is counted before it is decoded.
const (
	// maxExpanded bounds what aliases make of a document. The YAML parser bounds how many there are, but not what one
	// of them stands for.
	maxExpanded = 4 * MaxSize
	// maxObjects bounds the structs that a document is decoded into. No manifest has less than twenty bytes for one.
	maxObjects = MaxSize / 20
)

// limits are those that the kubelet has not. Zero is none.
type limits struct {
	values int // of any type in a document
	object int // structs in one object
}

// ours are generous: the API server takes objects of up to 3 MiB, with some hundred structs in a large pod.
var ours = limits{values: MaxSize / 10, object: 1 << 15}

var errVersion = errors.New("apiVersion and kind must be a version and a kind, as in v1 and Pod")

var (
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	podListKind = corev1.SchemeGroupVersion.WithKind("PodList")
	listKind    = corev1.SchemeGroupVersion.WithKind("List")
)

// openDocument gives a document as JSON, and says what it is.
func (l limits) openDocument(data []byte) ([]byte, schema.GroupVersionKind, error) {
	data, err := l.toJSON(data)
	if err != nil {
		return nil, schema.GroupVersionKind{}, err
	}
	kind, err := kindOf(data)
	return data, kind, err
}

// toJSON gives a document as JSON. What begins with a brace is JSON already; all else is read by the rules of
// YAML 1.1, in which "on" is a boolean and 0600 an octal number.
func (l limits) toJSON(data []byte) ([]byte, error) {
	if !yaml.IsJSONBuffer(data) {
		if l.values > 0 && yamlMarks(data) > l.values {
			return nil, ErrTooLarge
		}
		var tree any
		if err := yamlv2.Unmarshal(data, &tree); err != nil {
			return nil, yamlError(err)
		}
		budget := maxExpanded
		tree, err := jsonTree(tree, &budget)
		if err != nil {
			return nil, err
		}
		if data, err = json.Marshal(tree); err != nil {
			return nil, errors.New("holds a value that JSON has not")
		}
	}
	if structs, values := jsonWeight(data); structs > maxObjects || l.values > 0 && values > l.values {
		return nil, ErrTooLarge
	}
	return data, nil
}

// checkObject refuses an object, in JSON, that is nothing but structs.
func (l limits) checkObject(data []byte) error {
	if structs, _ := jsonWeight(data); l.object > 0 && structs > l.object {
		return ErrTooLarge
	}
	return nil
}

// yamlMarks counts what a value of a YAML document can begin after. What stands in text counts too, but text is long.
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

// jsonWeight counts, in JSON, what may become a struct, which is an object or a null in a list, and roughly all values.
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

// jsonTree makes strings of the keys of all mappings, in place of numbers and booleans, and takes the size of
// every value from the budget.
func jsonTree(node any, budget *int) (any, error) {
	*budget--
	if *budget < 0 {
		return nil, ErrTooLarge
	}
	switch node := node.(type) {
	case string:
		*budget -= len(node)
		return node, nil
	case []any:
		for i := range node {
			item, err := jsonTree(node[i], budget)
			if err != nil {
				return nil, err
			}
			node[i] = item
		}
		return node, nil
	case map[any]any:
		object := make(map[string]any, len(node))
		for key, value := range node {
			name, err := jsonKey(key)
			if err != nil {
				return nil, err
			}
			*budget -= len(name)
			if object[name], err = jsonTree(value, budget); err != nil {
				return nil, err
			}
		}
		return object, nil
	default:
		return node, nil
	}
}

func jsonKey(key any) (string, error) {
	switch key := key.(type) {
	case string:
		return key, nil
	case int:
		return strconv.Itoa(key), nil
	case int64:
		return strconv.FormatInt(key, 10), nil
	case bool:
		return strconv.FormatBool(key), nil
	case float64:
		text := strconv.FormatFloat(key, 'g', -1, 32)
		if special, ok := map[string]string{"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}[text]; ok {
			return special, nil
		}
		return text, nil
	default:
		return "", errors.New("the key of a mapping must be a string")
	}
}

// kindOf reads the type of a document, with keys in upper or lower case as the API machinery has it.
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

// decodePod reads a pod, with keys in their exact case. Unknown fields are dropped.
func decodePod(data []byte) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := utiljson.Unmarshal(data, pod); err != nil {
		return nil, jsonError(data, err)
	}
	return pod, nil
}

// decodeItems reads a list as far as its items, so that one bad item leaves the others readable.
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
