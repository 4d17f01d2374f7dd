package manifest_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/manifest"
)

// golden is what the kubelet 1.36.3 made of a manifest.
type golden struct {
	Rejected string            `json:"rejected"`
	Pods     []json.RawMessage `json:"pods"`
}

// kinder are the pairs in which we differ from the kubelet on purpose, without LikeKubelet: all of
// docs/kubelet.md that a manifest can show.
var kinder = map[string]map[string]string{
	manifest.SourceFile: {
		"fmt-configmap-then-pod":          "the second document is a pod",
		"fmt-second-document-broken":      "the second document is named as broken",
		"kind-list":                       "its items are pods",
		"kind-podlist":                    "its items are pods",
		"kind-podlist-empty":              "says that there are no pods",
		"kind-podlist-items-without-kind": "its items are pods",
		"kind-podlist-one-bad":            "the good item is a pod",
		"meta-uid-odd":                    "folders are named by UIDs",
	},
	manifest.SourceHTTP: {
		"fmt-configmap-then-pod":     "the second document is a pod",
		"fmt-second-document-broken": "the second document is named as broken",
		"kind-list":                  "its items are pods",
		"kind-podlist-one-bad":       "the good item is a pod",
		"meta-uid-odd":               "folders are named by UIDs",
	},
}

// younger are the pairs with a field that Kubernetes 1.36 has, and an older k8s.io/api does not.
var younger = map[string]string{"spec-scheduling-group": "schedulingGroup"}

// lacks is the field of spec that a pair has and this build does not; empty if there is none.
func lacks(name string) string {
	field := younger[name]
	known := func(f reflect.StructField) bool { return strings.Split(f.Tag.Get("json"), ",")[0] == field }
	if slices.ContainsFunc(reflect.VisibleFields(reflect.TypeFor[corev1.PodSpec]()), known) {
		return ""
	}
	return field
}

func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/manifests/*")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for source, folder := range map[string]string{manifest.SourceFile: "golden", manifest.SourceHTTP: "golden-http"} {
		t.Run(source, func(t *testing.T) {
			for _, input := range inputs {
				name := strings.TrimSuffix(filepath.Base(input), filepath.Ext(input))
				t.Run(name, func(t *testing.T) {
					data, err := os.ReadFile(input)
					require.NoError(t, err)
					output, err := os.ReadFile(filepath.Join("testdata", folder, name+".json"))
					require.NoError(t, err)
					want := readGolden(t, output).ofBuild(t)
					decoder := manifest.Decoder{Node: "node-1", Source: source, Release: releaseOf(t, "1.36")}
					require.Empty(t, want.differs(t, likeKubelet(decoder), input, data))
					if kinder[source][name] == "" {
						require.Empty(t, want.differs(t, decoder, input, data), "by default")
					} else {
						require.NotEmpty(t, want.differs(t, decoder, input, data), "by default: %s", kinder[source][name])
					}
				})
			}
		})
	}
}

// readGolden reads a pair's output: of a file it is the pod itself.
func readGolden(t testing.TB, output []byte) (g golden) {
	require.NoError(t, json.Unmarshal(output, &g))
	if g.Rejected == "" && g.Pods == nil {
		g.Pods = []json.RawMessage{output}
	}
	return g
}

// ofBuild is the outcome without the fields that the k8s.io/api of the build does not have. Of
// those a warning tells.
func (g golden) ofBuild(t *testing.T) golden {
	g.Pods = slices.Clone(g.Pods)
	for i := range g.Pods {
		var pod corev1.Pod
		require.NoError(t, json.Unmarshal(g.Pods[i], &pod))
		g.Pods[i] = toJSON(t, &pod)
	}
	return g
}

// differs says in what a decoder does not give what the kubelet gave.
func (g golden) differs(t *testing.T, decoder manifest.Decoder, input string, data []byte) string {
	pods, rejected := decoder.Decode(input, data)
	if g.Rejected != "" {
		if len(rejected) != 1 || len(pods) > 0 {
			return fmt.Sprintf("%d pods and rejections %v, and not one rejection", len(pods), rejected)
		}
		if want, got := fieldPaths(g.Rejected), fieldPaths(rejected[0].Error()); !slices.Equal(want, got) {
			return fmt.Sprintf("the rejection names %v and not %v: %v", got, want, rejected[0])
		}
		return ""
	}
	if len(rejected) > 0 || len(pods) != len(g.Pods) {
		return fmt.Sprintf("%d pods and rejections %v, and not %d pods", len(pods), rejected, len(g.Pods))
	}
	for i := range pods {
		if want, got := comparable(t, g.Pods[i]), comparable(t, toJSON(t, pods[i])); want != got {
			return fmt.Sprintf("pod %d is %s and not %s", i+1, got, want)
		}
	}
	return ""
}

// fieldPath finds metadata.x and spec.x[0].y in the text of a rejection.
var fieldPath = regexp.MustCompile(`\b(?:metadata|spec|status)\.[A-Za-z0-9.\[\]{}]*[A-Za-z0-9\]]`)

func fieldPaths(reason string) []string {
	// The bad values and the details of the kubelet's reasons may look like paths too.
	reason, _, _ = strings.Cut(reason, "invalid pod: &core.")
	reason = regexp.MustCompile("`[^`]*`|\"[^\"]*\"").ReplaceAllString(reason, "")
	reason = regexp.MustCompile(`field label not supported: \S+`).ReplaceAllString(reason, "")
	paths := fieldPath.FindAllString(reason, -1)
	slices.Sort(paths)
	return slices.Compact(paths)
}

func toJSON(t testing.TB, pod *corev1.Pod) []byte {
	data, err := json.Marshal(pod)
	require.NoError(t, err)
	return data
}

// comparable drops from a pod what differs from run to run, and what is only written in another
// way.
func comparable(t *testing.T, data []byte) string {
	var pod map[string]any
	require.NoError(t, json.Unmarshal(data, &pod))
	meta := pod["metadata"].(map[string]any)
	delete(meta, "uid")
	if meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	annotations, _ := meta["annotations"].(map[string]any)
	for _, key := range []string{manifest.HashAnnotation, manifest.SeenAnnotation, manifest.SourceAnnotation} {
		delete(annotations, key)
	}
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
	canonical, err := json.Marshal(pod)
	require.NoError(t, err)
	return string(canonical)
}
