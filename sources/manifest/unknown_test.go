package manifest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources/manifest"
)

// warning has a decoder warn, and returns the warnings.
func warning(d manifest.Decoder) (manifest.Decoder, *[]*manifest.Error) {
	var all []*manifest.Error
	d.Warn = func(err *manifest.Error) { all = append(all, err) }
	return d, &all
}

// TestUnknownFieldsOfTheCorpus: every field that the kubelet drops without a word is named, and no
// field that it keeps. What depends on the k8s.io/api of the build is named by the build that lacks
// it.
func TestUnknownFieldsOfTheCorpus(t *testing.T) {
	unknown := map[string][]string{
		"type-unknown-fields": {"extra", "metadata.colour", "spec.containers[0].imagePolicy", "spec.replicas"},
		"spec-workload-ref":   {"spec.hostNetwrok", "spec.workloadRef"},
	}
	inputs, err := filepath.Glob("testdata/manifests/*")
	require.NoError(t, err)
	warned := 0
	for _, input := range inputs {
		name := strings.TrimSuffix(filepath.Base(input), filepath.Ext(input))
		want := unknown[name]
		if field := lacks(name); field != "" {
			want = append(want, "spec."+field)
		}
		data, err := os.ReadFile(input)
		require.NoError(t, err)
		for _, decoder := range []manifest.Decoder{fromFile, fromHTTP, likeKubelet(fromFile), likeKubelet(fromHTTP)} {
			decoder, warnings := warning(decoder)
			pods, _ := decoder.Decode("m.yaml", data)
			var fields []string
			for _, w := range *warnings {
				fields = append(fields, w.Fields()...)
				require.Equal(t, "default/"+name+"-node-1", w.Pod)
			}
			slices.Sort(fields)
			require.Equal(t, want, fields, name)
			warned += len(fields)
			silent := decoder
			silent.Warn = nil
			without, _ := silent.Decode("m.yaml", data)
			require.Equal(t, without, pods, "a warning changes nothing")
		}
	}
	require.NotZero(t, warned)
}

// TestUnknownFieldsAreNamedWithTheirPlace: document, line, item and pod, and no value.
func TestUnknownFieldsAreNamedWithTheirPlace(t *testing.T) {
	misspelt := strings.Replace(yamlPod("b"), "image: x:1", "image: x:1\n    imagePullSecret: hidden", 1)
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
		json.RawMessage(jsonPod("a")), json.RawMessage(strings.Replace(jsonPod("b"), `"image"`, `"Image":"hidden","image"`, 1)),
	}})
	require.NoError(t, err)
	const reason = "; a field may be misspelt, or of a later release than the kubelet's or than this program was built for"
	for _, row := range []struct{ name, manifest, want string }{
		{"a document", yamlPod("a") + "---\n" + misspelt,
			"document 2, line 18: pod default/b-node-1: not known, and dropped: spec.containers[0].imagePullSecret" + reason},
		{"an item", string(list), "document 1, line 1, item 2: pod default/b-node-1: not known, and dropped: spec.containers[0].Image" + reason},
		{"a newer field than the kubelet's", yamlPod("a") + "  evictionResponders: [{}]\n",
			"document 1, line 9: pod default/a-node-1: not known, and dropped: spec.evictionResponders" + reason},
		{"many", yamlPod("a") + "  hostNetwrok: true\n  volumes: [{name: v, emptyDir: {mode: 1}}, {name: w, secert: {}, emptyDir: {}}]\n", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			decoder, warnings := warning(fromFile)
			pods, rejected := decoder.Decode("m.yaml", []byte(row.manifest))
			require.Empty(t, rejected)
			require.NotEmpty(t, pods)
			require.Len(t, *warnings, 1)
			if row.want != "" {
				require.Equal(t, []string{row.want}, texts(t, *warnings))
				return
			}
			require.ElementsMatch(t, []string{"spec.hostNetwrok", "spec.volumes[0].emptyDir.mode", "spec.volumes[1].secert"}, (*warnings)[0].Fields())
		})
	}
	decoder, warnings := warning(fromFile)
	_, rejected := decoder.Decode("m.yaml", []byte(strings.Replace(misspelt, "containers", "contianers", 1)))
	require.Len(t, rejected, 1)
	require.Empty(t, *warnings, "a rejected pod has another fault")
}

// TestNewerFieldsOfAnyType: a kubelet that does not know a field does not look at its value. This
// build may know it, with the type of its release.
func TestNewerFieldsOfAnyType(t *testing.T) {
	for field, manifest := range map[string]string{
		"spec.workloadRef":                 yamlPod("a") + "  workloadRef: [a, list]\n",
		"spec.evictionResponders":          yamlPod("a") + "  evictionResponders: a text\n",
		"spec.volumes[0].emptyDir.mode":    yamlPod("a") + "  volumes: [{name: v, emptyDir: {mode: {a: map}}}]\n",
		"spec.containers[0].livenessProbe": "", // which every release knows
	} {
		t.Run(field, func(t *testing.T) {
			decoder, warnings := warning(fromFile)
			if manifest == "" {
				_, rejected := decoder.Decode("m.yaml", []byte(yamlPod("a")+"    livenessProbe: 7\n  workloadRef: 7\n"))
				require.Len(t, rejected, 1)
				require.NotContains(t, rejected[0].Error(), "workloadRef")
				return
			}
			pods, rejected := decoder.Decode("m.yaml", []byte(manifest))
			require.Empty(t, rejected)
			require.Len(t, pods, 1)
			require.Len(t, *warnings, 1)
			require.Equal(t, []string{field}, (*warnings)[0].Fields())
			without, _ := fromFile.Decode("m.yaml", []byte(manifest))
			require.Equal(t, without, pods)
		})
	}
}
