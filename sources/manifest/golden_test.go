package manifest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
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

func TestGoldenFile(t *testing.T) {
	testGolden(t, "golden", manifest.SourceFile, func(data []byte) golden {
		var g golden
		require.NoError(t, json.Unmarshal(data, &g))
		if g.Rejected == "" {
			g.Pods = []json.RawMessage{data}
		}
		return g
	})
}

func TestGoldenHTTP(t *testing.T) {
	testGolden(t, "golden-http", manifest.SourceHTTP, func(data []byte) golden {
		var g golden
		require.NoError(t, json.Unmarshal(data, &g))
		return g
	})
}

func testGolden(t *testing.T, folder, source string, read func([]byte) golden) {
	inputs, err := filepath.Glob("testdata/manifests/*")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	decoder := manifest.Decoder{Node: "node-1", Source: source, LikeKubelet: true}
	for _, input := range inputs {
		name := strings.TrimSuffix(filepath.Base(input), filepath.Ext(input))
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(input)
			require.NoError(t, err)
			output, err := os.ReadFile(filepath.Join("testdata", folder, name+".json"))
			require.NoError(t, err)
			want := read(output)
			pods, rejected := decoder.Decode(input, data)
			if want.Rejected != "" {
				require.Empty(t, pods)
				require.Len(t, rejected, 1)
				require.Equal(t, fieldPaths(want.Rejected), fieldPaths(rejected[0].Error()), "%v", rejected[0])
				return
			}
			require.Empty(t, rejected)
			require.Len(t, pods, len(want.Pods))
			for i := range pods {
				require.JSONEq(t, comparable(t, want.Pods[i]), comparable(t, toJSON(t, pods[i])))
			}
		})
	}
}

// fieldPath finds metadata.x and spec.x[0].y in the text of a rejection.
var fieldPath = regexp.MustCompile(`\b(?:metadata|spec)\.[A-Za-z0-9.\[\]{}]*[A-Za-z0-9\]]`)

func fieldPaths(reason string) []string {
	// The bad values and the details of the kubelet's reasons may look like paths too.
	reason, _, _ = strings.Cut(reason, "invalid pod: &core.")
	reason = regexp.MustCompile("`[^`]*`|\"[^\"]*\"").ReplaceAllString(reason, "")
	reason = regexp.MustCompile(`field label not supported: \S+`).ReplaceAllString(reason, "")
	paths := fieldPath.FindAllString(reason, -1)
	slices.Sort(paths)
	return slices.Compact(paths)
}

func toJSON(t *testing.T, pod *corev1.Pod) []byte {
	data, err := json.Marshal(pod)
	require.NoError(t, err)
	return data
}

// comparable drops from a pod what differs from run to run, and what is only written in another way.
func comparable(t *testing.T, data []byte) string {
	var pod map[string]any
	require.NoError(t, json.Unmarshal(data, &pod))
	meta := pod["metadata"].(map[string]any)
	delete(meta, "uid")
	if meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	annotations := meta["annotations"].(map[string]any)
	for _, key := range []string{manifest.HashAnnotation, manifest.SeenAnnotation, manifest.SourceAnnotation} {
		delete(annotations, key)
	}
	canonical, err := json.Marshal(pod)
	require.NoError(t, err)
	return string(canonical)
}
