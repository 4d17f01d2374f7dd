package manifest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const goodFlow = "{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {containers: [{name: c, image: 'x:1'}]}}\n"

func flowPod(name string) string { return strings.ReplaceAll(goodFlow, "NAME", name) }

// TestDecodeFlow: a brace begins JSON only if it begins the manifest, as for the kubelet.
func TestDecodeFlow(t *testing.T) {
	first := func(line string) []string { return []string{line} }
	const rest = "what follows the object is not read: begin a document with ---"
	for _, row := range []struct {
		name     string
		manifest string
		pods     []string
		rejected []string
	}{
		{"behind a marker", "---\n" + flowPod("a"), first("a-node-1"), nil},
		{"behind a comment", "# a\n" + flowPod("a"), first("a-node-1"), nil},
		{"JSON with a comment after it", "---\n" + jsonPod("a") + "\n# the end\n", first("a-node-1"), nil},
		{"JSON with a comma too many", "---\n" + strings.Replace(jsonPod("a"), `"x:1"}`, `"x:1",}`, 1), first("a-node-1"), nil},
		{"JSON with half a surrogate pair", "---\n" + strings.Replace(jsonPod("a"), `"name":"a"`, `"name":"a","labels":{},"annotations":{"k":"\ud83d"}`, 1), first("a-node-1"), nil},
		{"the second document", yamlPod("a") + "---\n" + flowPod("b"), []string{"a-node-1", "b-node-1"}, nil},
		{"the second document, after JSON", jsonPod("a") + "\n---\n" + flowPod("b"), []string{"a-node-1", "b-node-1"}, nil},
		{"at the very beginning", flowPod("a"), []string{}, first("document 1, line 1: not valid JSON")},
		{"more after the object", "---\n" + flowPod("a") + flowPod("b"), first("a-node-1"), first("document 1, line 3: " + rest)},
		{"more after an indented object", strings.ReplaceAll("\n"+yamlPod("a"), "\n", "\n  ") + "\nmore: yes\n", first("a-node-1"), first("document 1, line 11: " + rest)},
	} {
		t.Run(row.name, func(t *testing.T) {
			pods, rejected := fromFile.Decode("m.yaml", []byte(row.manifest))
			require.Equal(t, row.pods, podNames(pods))
			require.ElementsMatch(t, row.rejected, texts(t, rejected))
		})
	}
}

// TestDecodeTwinKeys: keys that YAML tells apart and JSON does not. The kubelet keeps either, at
// random.
func TestDecodeTwinKeys(t *testing.T) {
	twins := func(annotations string) []byte {
		return []byte(strings.Replace(yamlPod("a"), "  name: a", "  name: a\n  annotations: "+annotations, 1))
	}
	for _, row := range []struct{ annotations, key, kept string }{
		{`{1: a, "1": b}`, "1", "b"},
		{`{"true": a, true: b}`, "true", "a"},
		{`{1.5: a, 1.50000000001: b}`, "1.5", "a"},
		{`{1: a, 1.00000000001: b}`, "1", "b"},
		{`{.nan: a, .NaN: b}`, ".nan", ""},
	} {
		for range 50 {
			pods, rejected := fromFile.Decode("m.yaml", twins(row.annotations))
			require.Empty(t, pods)
			why := "document 1, line 5: metadata.annotations[" + row.key + "]: two keys are one in JSON: give each once, as a text"
			require.Equal(t, []string{why}, texts(t, rejected))

			pods, rejected = likeKubelet(fromFile).Decode("m.yaml", twins(row.annotations))
			if row.kept == "" {
				require.Equal(t, []string{why}, texts(t, rejected))
				continue
			}
			require.Empty(t, rejected)
			require.Equal(t, row.kept, pods[0].Annotations[row.key])
		}
	}
}

// TestDecodeFaultsOfKeysAreStable: which of several faults is named does not depend on the order of
// a Go map.
func TestDecodeFaultsOfKeysAreStable(t *testing.T) {
	const text = "- {b: {1: a, '1': b}}\n- {a: {2: a, '2': b}, c: {3: a, '3': b}, d: {~: a}}\n"
	for range 50 {
		_, rejected := fromFile.Decode("m.yaml", []byte(text))
		require.Equal(t, []string{"document 1, line 1: [0].b[1]: two keys are one in JSON: give each once, as a text"}, texts(t, rejected))
	}
	for range 50 {
		_, rejected := fromFile.Decode("m.yaml", []byte(text[strings.Index(text, "\n")+1:]))
		require.Equal(t, []string{"document 1, line 1: [0].a[2]: two keys are one in JSON: give each once, as a text"}, texts(t, rejected))
	}
}

// TestErrorFields: a program has the paths that the text of an error has.
func TestErrorFields(t *testing.T) {
	bad := strings.Replace(strings.Replace(yamlPod("a"), "x:1", "''", 1), "name: a", "name: a\n  labels: {'k\"[': v}", 1)
	_, rejected := fromFile.Decode("m.yaml", []byte(bad))
	require.Equal(t, []string{"metadata.labels", "spec.containers[0].image"}, rejected[0].Fields())
	_, rejected = fromFile.Decode("m.yaml", []byte(strings.Replace(yamlPod("a"), "x:1", "5", 1)))
	require.Equal(t, []string{"spec.containers.image"}, rejected[0].Fields())
	_, rejected = fromFile.Decode("m.yaml", []byte("hello"))
	require.Empty(t, rejected[0].Fields())
}
