package podapi

import (
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// newer are the fields of k8s.io/api, by type, that Kubernetes 1.36 lacks. They are named, for the
// k8s.io/api of an older release does not have them. Empty this when the package follows a newer
// release.
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
	"PodSpec":                            {"EvictionResponders"},
	"PodStatus":                          {"VolumeHealth"},
	"ProjectedVolumeSource":              {"DefaultUser"},
	"SecretVolumeSource":                 {"DefaultUser"},
	"ServiceAccountTokenProjection":      {"User"},
	"VolumeMount":                        {"BindMountOptions"},
}

// dropNewer removes the newer fields: the decoder of Kubernetes 1.36 drops them as unknown.
func dropNewer(pod *corev1.Pod) { podWalk().drop(reflect.ValueOf(pod).Elem()) }

// walk is the way to the newer fields of a type. Branches without one are left out.
type walk struct {
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
	w := walk{enters: map[int]*walk{}}
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

func (w *walk) drop(v reflect.Value) {
	switch {
	case w == nil:
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			w.drop(v.Index(i))
		}
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			w.drop(v.Elem())
		}
	default:
		for _, i := range w.clears {
			v.Field(i).SetZero()
		}
		for i, inner := range w.enters {
			inner.drop(v.Field(i))
		}
	}
}
