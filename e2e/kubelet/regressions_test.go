package kubelet_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources/manifest"
)

const spec = "spec: {containers: [{name: c, image: 'x:1'}]}"

// TestRegressions are manifests by which a run with random ones has failed, each with what it
// found.
func TestRegressions(t *testing.T) {
	k := startKubelet(t)
	for found, data := range map[string]string{
		// Seed 1795317861818110472, manifest 3687: the comparison, and not the product, took the
		// quote for the beginning of a value, and cut another field out of the text. Since then it
		// compares fields, and takes no text apart.
		"a quote in a key": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  resources: {limits: {cpu: 1, memory\" 100Mi}}\n" +
			"  containers:\n  - {name: c, image: 'x:1', resources: {requests: {cpu: 100m}}}\n",
		"what looks like a path in a key": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {'x: spec.a, (spec.b[0]': 'metadata.c'}}\n" + spec,
	} {
		for _, source := range kinds {
			require.Empty(t, differs(t, k.ask(t, source, []byte(data)), ours(t, source, []byte(data))), found)
		}
	}
}

// TestFlowLikeTheKubelet: JSON and flow mappings, read by default as the kubelet reads them.
func TestFlowLikeTheKubelet(t *testing.T) {
	const flow = "{apiVersion: v1, kind: Pod, metadata: {name: a}, " + spec + "}\n"
	const inJSON = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}` + "\n"
	k := startKubelet(t)
	for data, accepted := range map[string]bool{
		flow: false, "---\n" + flow: true, "--- " + flow: true, "# a\n" + flow: true, "\n---\n" + flow + "# the end\n": true,
		inJSON: true, inJSON + "# the end\n": false, "---\n" + inJSON: true, "---\n" + inJSON + "# the end\n": true, "# a\n" + inJSON + "# the end\n": true,
	} {
		for _, source := range kinds {
			theirs := k.ask(t, source, []byte(data))
			require.Equal(t, accepted, theirs.Rejected == "", "%s: %s", data, theirs.Rejected)
			pods, rejected := manifest.Decoder{Node: "node-1", Source: source}.Decode("/manifests/pod", []byte(data))
			var byDefault outcome
			for _, err := range rejected {
				byDefault.Rejected += err.Error()
			}
			for _, pod := range pods {
				text, err := json.Marshal(pod)
				require.NoError(t, err)
				byDefault.Pods = append(byDefault.Pods, text)
			}
			require.Empty(t, differs(t, theirs, byDefault), data)
		}
	}
}

// TestTwinKeysLikeTheKubelet: of keys that are one in JSON the kubelet keeps either, by the order
// of a Go map. Ours is one of its outcomes, and always the same one.
func TestTwinKeysLikeTheKubelet(t *testing.T) {
	data := []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {1: a, \"1\": b}}\n" + spec)
	k := startKubelet(t)
	theirs := map[string]int{}
	for range 64 {
		theirs[comparable(t, k.ask(t, manifest.SourceFile, data).Pods[0])]++
	}
	require.Len(t, theirs, 2)
	for range 64 {
		mine := ours(t, manifest.SourceFile, data)
		require.Contains(t, theirs, comparable(t, mine.Pods[0]))
		require.Contains(t, string(mine.Pods[0]), `"1":"b"`)
	}
}
