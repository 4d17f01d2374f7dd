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
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// span is from the first release that has a field to the first that has it no more. Zero is open.
type span struct{ since, until Release }

func (s span) has(r Release) bool { return r >= s.since && (s.until == 0 || r < s.until) }

// newer are the fields that not every followed release has, by type and name in JSON. A type or
// field may be missing in the k8s.io/api of the build. Those of all releases are listed because
// rules of newer fields look at them.
var newer = map[string]map[string]span{
	"ClusterTrustBundleProjection":       {"user": {since: R137}},
	"ConfigMapVolumeSource":              {"defaultUser": {since: R137}},
	"DownwardAPIVolumeFile":              {"user": {since: R137}},
	"DownwardAPIVolumeSource":            {"defaultUser": {since: R137}},
	"EmptyDirVolumeSource":               {"mode": {since: R137}},
	"GRPCAction":                         {"mode": {since: R137}},
	"HTTPGetAction":                      {"protocol": {since: R137}},
	"KeyToPath":                          {"user": {since: R137}},
	"NodeAllocatableResourceClaimStatus": {"mapping": {since: R137}, "overhead": {since: R137}, "resources": {until: R137}},
	"PodCertificateProjection":           {"user": {since: R137}},
	"PodSpec":                            {"evictionResponders": {since: R137}, "schedulingGroup": {}, "workloadRef": {since: never}},
	"PodStatus":                          {"nodeAllocatableResourceClaimStatuses": {}, "volumeHealth": {since: R137}},
	"ProjectedVolumeSource":              {"defaultUser": {since: R137}},
	"SeccompProfile":                     {"oci": {since: R138}},
	"SecretVolumeSource":                 {"defaultUser": {since: R137}},
	"ServiceAccountTokenProjection":      {"user": {since: R137}},
	"VolumeMount":                        {"bindMountOptions": {since: R137}},
}

// DropNewer removes the fields that the release does not have: its decoder drops them as unknown.
// It returns the paths of those that were set, in order. Default does the same.
func (r Release) DropNewer(pod *corev1.Pod) (dropped []string) {
	dropped = podWalk().drop(reflect.ValueOf(pod).Elem(), r)
	slices.Sort(dropped)
	return dropped
}

// CutNewer is DropNewer for a pod in JSON. The fields are removed whatever they hold: the build may
// have another type for them, or none. Without such a field, rest is data.
func (r Release) CutNewer(data []byte) (rest []byte, cut []string) {
	tree := treeOf(data)
	podWalk().visit(tree, "", func(path string, in map[string]any, name string, of span) {
		if !of.has(r) {
			delete(in, name)
			cut = append(cut, path)
		}
	})
	if len(cut) == 0 {
		return data, nil
	}
	slices.Sort(cut)
	rest, err := json.Marshal(tree)
	if err != nil {
		return data, nil
	}
	return rest, cut
}

// Newer are the newer fields that a pod has, by path: the build may have no type for them.
type Newer map[string]any

// NewerOf reads the newer fields of a pod in JSON that the release has, and its rules are about.
func (r Release) NewerOf(data []byte) Newer {
	if r < R137 {
		return nil
	}
	found := Newer{}
	podWalk().visit(treeOf(data), "", func(path string, in map[string]any, name string, of span) {
		if of.has(r) && in[name] != nil {
			found[path] = in[name]
		}
	})
	return found
}

// treeOf is nil for what is no JSON.
func treeOf(data []byte) (tree any) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if decoder.Decode(&tree) != nil {
		return nil
	}
	return tree
}

// newerAt is the value of a newer field. One of another type is a fault: the release's decoder
// would refuse it, and that of the build has no type for it.
func newerAt[T any](v *validator, at *field.Path) (value T, ok bool) {
	if len(v.newer) == 0 {
		return value, false
	}
	found, ok := v.newer[at.String()]
	if !ok {
		return value, false
	}
	data, err := json.Marshal(found)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, &value)
	}
	if err != nil {
		v.invalid(at, "has a value of another type")
	}
	return value, err == nil
}

// walk is the way to the newer fields of a type. Branches without one are left out.
type walk struct {
	newer  map[string]span
	fields map[string]int   // those of newer that the build has
	enters map[string]*walk // by name in JSON, behind pointers and slices
	index  map[string]int   // of enters
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
	w := walk{newer: newer[t.Name()], fields: map[string]int{}, enters: map[string]*walk{}, index: map[string]int{}}
	for i := range t.NumField() {
		name := jsonName(t.Field(i))
		if _, ok := w.newer[name]; ok {
			w.fields[name] = i
		}
		if inner := walkOf(t.Field(i).Type); inner != nil {
			w.enters[name], w.index[name] = inner, i
		}
	}
	if len(w.newer)+len(w.enters) == 0 {
		return nil
	}
	return &w
}

// drop clears the fields of a value that the release does not have, and returns their paths in it.
func (w *walk) drop(v reflect.Value, r Release) (dropped []string) {
	switch {
	case w == nil:
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			for _, path := range w.drop(v.Index(i), r) {
				dropped = append(dropped, fmt.Sprintf("[%d].%s", i, path))
			}
		}
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			return w.drop(v.Elem(), r)
		}
	default:
		for name, i := range w.fields {
			if own := v.Field(i); !w.newer[name].has(r) && !own.IsZero() {
				own.SetZero()
				dropped = append(dropped, name)
			}
		}
		for name, inner := range w.enters {
			for _, path := range inner.drop(v.Field(w.index[name]), r) {
				dropped = append(dropped, below(name, path))
			}
		}
	}
	return dropped
}

// visit calls found for each newer field of a value in JSON, with its path and its place.
func (w *walk) visit(node any, at string, found func(path string, in map[string]any, name string, of span)) {
	switch node := node.(type) {
	case []any:
		for i := range node {
			w.visit(node[i], fmt.Sprintf("%s[%d]", at, i), found)
		}
	case map[string]any:
		for name, of := range w.newer {
			if _, ok := node[name]; ok {
				found(below(at, name), node, name, of)
			}
		}
		for name, inner := range w.enters {
			if name == "" { // a struct whose fields are its parent's
				inner.visit(node, at, found)
			} else if next, ok := node[name]; ok {
				inner.visit(next, below(at, name), found)
			}
		}
	}
}

// jsonName is the key of a field; empty for a struct whose fields are its parent's.
func jsonName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

func below(parent, path string) string {
	if parent == "" || path == "" || strings.HasPrefix(path, "[") {
		return parent + path
	}
	return parent + "." + path
}
