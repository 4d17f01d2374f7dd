package podapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// newer are the fields of k8s.io/api, by type, that Kubernetes 1.36 lacks: those of newer releases,
// and WorkloadRef of an older one. They are named, for the k8s.io/api of another release does not
// have them. Revise this when the package follows a newer release.
var newer = map[string][]string{
	"ClusterTrustBundleProjection":       {"User"},
	"ConfigMapVolumeSource":              {"DefaultUser"},
	"DownwardAPIVolumeFile":              {"User"},
	"DownwardAPIVolumeSource":            {"DefaultUser"},
	"EmptyDirVolumeSource":               {"Mode"},
	"GRPCAction":                         {"Mode"},
	"HTTPGetAction":                      {"Protocol"},
	"KeyToPath":                          {"User"},
	"NodeAllocatableResourceClaimStatus": {"Mapping", "Overhead"},
	"PodCertificateProjection":           {"User"},
	"PodSpec":                            {"EvictionResponders", "WorkloadRef"},
	"PodStatus":                          {"VolumeHealth"},
	"ProjectedVolumeSource":              {"DefaultUser"},
	"SecretVolumeSource":                 {"DefaultUser"},
	"ServiceAccountTokenProjection":      {"User"},
	"VolumeMount":                        {"BindMountOptions"},
}

// DropNewer removes the newer fields: the decoder of Kubernetes 1.36 drops them as unknown. It
// returns the paths of those that were set, in order. Default does the same.
func DropNewer(pod *corev1.Pod) (dropped []string) {
	dropped = podWalk().drop(reflect.ValueOf(pod).Elem())
	slices.Sort(dropped)
	return dropped
}

// CutNewer removes the newer fields from a pod in JSON, of whatever type their values are: another
// release may have another type for them, or none. It returns their paths, in order; without one,
// rest is data.
func CutNewer(data []byte) (rest []byte, cut []string) {
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil {
		return data, nil
	}
	if cut = podWalk().cut(tree); len(cut) == 0 {
		return data, nil
	}
	slices.Sort(cut)
	rest, err := json.Marshal(tree)
	if err != nil {
		return data, nil
	}
	return rest, cut
}

// walk is the way to the newer fields of a type. Branches without one are left out.
type walk struct {
	of     reflect.Type
	clears []int         // fields
	enters map[int]*walk // by field: of its type, behind pointers and slices
}

var podWalk = sync.OnceValue(func() *walk { return walkOf(reflect.TypeFor[corev1.Pod]()) })

// walkOf is nil if nothing in t is newer. No type of a pod contains itself.
func walkOf(t reflect.Type) *walk {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	w := walk{of: t, enters: map[int]*walk{}}
	for _, name := range newer[t.Name()] {
		if field, ok := t.FieldByName(name); ok {
			w.clears = append(w.clears, field.Index[0])
		}
	}
	for i := range t.NumField() {
		if inner := walkOf(t.Field(i).Type); inner != nil {
			w.enters[i] = inner
		}
	}
	if len(w.clears)+len(w.enters) == 0 {
		return nil
	}
	return &w
}

// drop clears the newer fields of a value, and returns their paths in it.
func (w *walk) drop(v reflect.Value) (dropped []string) {
	switch {
	case w == nil:
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			for _, path := range w.drop(v.Index(i)) {
				dropped = append(dropped, fmt.Sprintf("[%d].%s", i, path))
			}
		}
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			return w.drop(v.Elem())
		}
	default:
		for _, i := range w.clears {
			if field := v.Field(i); !field.IsZero() {
				field.SetZero()
				dropped = append(dropped, jsonName(v.Type().Field(i)))
			}
		}
		for i, inner := range w.enters {
			for _, path := range inner.drop(v.Field(i)) {
				dropped = append(dropped, below(jsonName(v.Type().Field(i)), path))
			}
		}
	}
	return dropped
}

// cut removes the newer fields of a value in JSON, and returns their paths in it.
func (w *walk) cut(node any) (paths []string) {
	switch node := node.(type) {
	case []any:
		for i := range node {
			for _, path := range w.cut(node[i]) {
				paths = append(paths, fmt.Sprintf("[%d].%s", i, path))
			}
		}
	case map[string]any:
		for _, i := range w.clears {
			name := jsonName(w.of.Field(i))
			if _, ok := node[name]; ok {
				delete(node, name)
				paths = append(paths, name)
			}
		}
		for i, inner := range w.enters {
			name := jsonName(w.of.Field(i))
			next := any(node) // a struct whose fields are its parent's
			if name != "" {
				next = node[name]
			}
			for _, path := range inner.cut(next) {
				paths = append(paths, below(name, path))
			}
		}
	}
	return paths
}

// jsonName is the key of a field; empty for a struct whose fields are its parent's.
func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

func below(parent, path string) string {
	if parent == "" || strings.HasPrefix(path, "[") {
		return parent + path
	}
	return parent + "." + path
}
