package podapi_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/tributary-go/tributary/internal/podapi"
)

// rule is a pod with a fragment, and the fields that the API refuses in it.
type rule struct {
	name     string
	fragment string
	fields   string // separated by spaces; empty for a pod that is accepted
}

// The place of a table's fragments in an otherwise good pod.
const (
	inPod       = "pod"
	inSpec      = "spec"
	inContainer = "container" // spec.containers[0], named c; C stands for its path
	inVolume    = "volume"    // spec.volumes[0], named v; V stands for its path
)

func podWith(t *testing.T, where, fragment string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = "p", "default"
	pod.Spec.NodeName = "n"
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "registry.example.com/c:1"}}
	var into any
	switch where {
	case inPod:
		into = pod
	case inSpec:
		into = &pod.Spec
	case inContainer:
		pod.Spec.Volumes = []corev1.Volume{{Name: "v"}, {Name: "w"}}
		into = &pod.Spec.Containers[0]
	case inVolume:
		pod.Spec.Volumes = []corev1.Volume{{Name: "v"}}
		into = &pod.Spec.Volumes[0]
	}
	unmarshal(t, fragment, into)
	return pod
}

// unmarshal goes through JSON, since yaml.Unmarshal allocates embedded pointers.
func unmarshal(t *testing.T, text string, into any) {
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err, text)
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(into)
	if _, newest := reflect.TypeFor[corev1.PodSpec]().FieldByName("EvictionResponders"); !newest && err != nil &&
		strings.Contains(err.Error(), "unknown field") {
		t.Skipf("an older k8s.io/api has no such field: %v", err)
	}
	require.NoError(t, err, text)
}

func testRules(t *testing.T, where string, rules []rule) {
	names := map[string]bool{}
	for _, r := range rules {
		require.False(t, names[r.name], "two rules are named %q", r.name)
		names[r.name] = true
		t.Run(r.name, func(t *testing.T) {
			pod := podWith(t, where, r.fragment)
			podapi.R136.Default(pod)
			require.Equal(t, r.paths(), faultyFields(pod))
		})
	}
}

func (r rule) paths() []string {
	short := strings.NewReplacer("C.", "spec.containers[0].", "V.", "spec.volumes[0].")
	paths := []string{}
	for _, path := range strings.Fields(r.fields) {
		if strings.HasPrefix(path, "C.") || strings.HasPrefix(path, "V.") {
			path = short.Replace(path[:2]) + path[2:]
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

func faultyFields(pod *corev1.Pod) []string {
	fields := []string{}
	for _, fault := range podapi.R136.Validate(pod, nil) {
		fields = append(fields, strings.ReplaceAll(fault.Field, " ", ""))
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}
