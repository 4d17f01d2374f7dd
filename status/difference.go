package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// difference is the merge patch that makes the new state of the old one.
func (c Change) difference() ([]byte, error) {
	if c.old == nil || c.new == nil {
		return nil, fmt.Errorf("the object was %s: only a modified one has a difference", c.Op)
	}
	var sides [2][]byte
	for i, obj := range []any{c.old, c.new} {
		if err := showable(c.resource, obj); err != nil {
			return nil, err
		}
		var err error
		if sides[i], err = withoutLastApplied(obj); err != nil {
			return nil, err
		}
	}
	patch, err := jsonpatch.CreateMergePatch(sides[0], sides[1])
	if len(patch) > maxDifference {
		return nil, fmt.Errorf("the difference has %d bytes: %d are shown at most", len(patch), maxDifference)
	}
	return patch, err
}

var (
	errSecret  = errors.New("secrets have no difference here")
	errUnknown = errors.New("the difference could be that of a secret: the source of the object does not name its resource, and the object no kind")
)

// showable refuses an object that may have a value of a Secret. The resource decides: metadata have
// a Secret's values in annotations, and a projection is of any Go type.
func showable(resource string, obj any) error {
	plural, _, _ := strings.Cut(resource, ".")
	kind := kindOf(obj)
	switch {
	case plural == "secrets" || kind == "Secret":
		return errSecret
	case plural == "" && kind == "":
		return errUnknown
	}
	return nil
}

// kindOf is the kind that an object is or names; empty if neither says it.
func kindOf(obj any) string {
	if _, isSecret := obj.(*corev1.Secret); isSecret {
		return "Secret"
	}
	if named, ok := obj.(runtime.Object); ok {
		if kind := named.GetObjectKind().GroupVersionKind().Kind; kind != "" && kind != "PartialObjectMetadata" {
			return kind
		}
	}
	if t := reflect.TypeOf(obj); t.Kind() == reflect.Pointer && strings.HasPrefix(t.Elem().PkgPath(), "k8s.io/api/") {
		return t.Elem().Name() // decoded objects name no kind
	}
	return ""
}

// withoutLastApplied is an object in JSON without the copy of it that kubectl apply makes.
func withoutLastApplied(obj any) ([]byte, error) {
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	metadata, _ := document["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, copied := annotations[corev1.LastAppliedConfigAnnotation]; !copied {
		return text, nil
	}
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	return json.Marshal(document)
}
