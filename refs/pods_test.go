package refs_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/refs"
)

// TestAllMentionsAreFound sets each field of a pod by which it can mention a Secret or a ConfigMap,
// one at a time. The fields are found by their names, so that a new one fails the test.
func TestAllMentionsAreFound(t *testing.T) {
	for what, c := range map[string]struct {
		names func(*corev1.Pod) refs.Names
		paths int
	}{
		// The kubelet's list has as many: 11 kinds of volumes, the image pull secrets, and two
		// fields of each of three kinds of containers.
		"secret":    {refs.SecretsOf, 18},
		"configmap": {refs.ConfigMapsOf, 8},
	} {
		t.Run(what, func(t *testing.T) {
			var paths []string
			mentions(reflect.TypeFor[corev1.PodSpec](), "spec", what, func(path string, set func(spec reflect.Value, name string)) {
				paths = append(paths, path)
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns}}
				set(reflect.ValueOf(&pod.Spec).Elem(), "x")
				require.Equal(t, refs.In(ns, "x"), c.names(pod), path)
			})
			require.Len(t, paths, c.paths, strings.Join(paths, "\n"))
			require.Empty(t, c.names(&corev1.Pod{}))
		})
	}
}

// mentions calls found for each path to a name of what in a type, with a function that sets it.
func mentions(of reflect.Type, path, what string, found func(path string, set func(reflect.Value, string))) {
	switch of.Kind() {
	case reflect.Pointer:
		mentions(of.Elem(), path, what, func(path string, set func(reflect.Value, string)) {
			found(path, func(v reflect.Value, name string) {
				v.Set(reflect.New(of.Elem()))
				set(v.Elem(), name)
			})
		})
	case reflect.Slice:
		mentions(of.Elem(), path, what, func(path string, set func(reflect.Value, string)) {
			found(path, func(v reflect.Value, name string) {
				v.Set(reflect.MakeSlice(of, 1, 1))
				set(v.Index(0), name)
			})
		})
	case reflect.Struct:
		for i := range of.NumField() {
			field := of.Field(i)
			label := "." + strings.Split(field.Tag.Get("json"), ",")[0]
			mentions(field.Type, strings.TrimSuffix(path+label, "."), what, func(path string, set func(reflect.Value, string)) {
				found(path, func(v reflect.Value, name string) { set(v.Field(i), name) })
			})
		}
	case reflect.String:
		path = strings.ToLower(path)
		if strings.Contains(path, what) && (strings.HasSuffix(path, ".name") || strings.HasSuffix(path, ".secretname")) {
			found(path, func(v reflect.Value, name string) { v.SetString(name) })
		}
	}
}
