package manifest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/sources/manifest"
)

// A good manifest in both syntaxes; NAME stands for the name of its pod.
const (
	goodYAML = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: NAME\nspec:\n  containers:\n  - name: c\n    image: x:1\n"
	goodJSON = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME"},"spec":{"containers":[{"name":"c","image":"x:1"}]}}`
)

func yamlPod(name string) string { return strings.ReplaceAll(goodYAML, "NAME", name) }
func jsonPod(name string) string { return strings.ReplaceAll(goodJSON, "NAME", name) }

var (
	fromFile = manifest.Decoder{Node: "node-1", Source: manifest.SourceFile}
	fromHTTP = manifest.Decoder{Node: "node-1", Source: manifest.SourceHTTP}
)

func likeKubelet(d manifest.Decoder) manifest.Decoder {
	d.LikeKubelet = true
	return d
}

func podNames(pods []*corev1.Pod) []string {
	names := []string{}
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

// texts are the errors without the path, which all have.
func texts(t *testing.T, rejected []*manifest.Error) []string {
	texts := []string{}
	for _, err := range rejected {
		require.Equal(t, "m.yaml", err.Path)
		text, ok := strings.CutPrefix(err.Error(), "m.yaml")
		require.True(t, ok)
		texts = append(texts, strings.TrimPrefix(text, ", "))
	}
	return texts
}

func TestDecodeStream(t *testing.T) {
	bad := strings.Replace(yamlPod("bad"), "image: x:1", "image: ''", 1)
	for _, row := range []struct {
		name     string
		manifest string
		pods     []string
		rejected []string
	}{
		{"one pod", yamlPod("a"), []string{"a-node-1"}, nil},
		{"two documents", yamlPod("a") + "---\n" + yamlPod("b"), []string{"a-node-1", "b-node-1"}, nil},
		{"markers around documents", "---\n" + yamlPod("a") + "...\n---\n" + yamlPod("b") + "...\n", []string{"a-node-1", "b-node-1"}, nil},
		{"comments around documents", "# a\n---\n# b\n" + yamlPod("a") + "---\n# nothing\n---\n\n" + yamlPod("b") + "---\n", []string{"a-node-1", "b-node-1"}, nil},
		{"directive", "%YAML 1.1\n---\n" + yamlPod("a"), []string{"a-node-1"}, nil},
		{"content beside the marker", "--- " + jsonPod("a") + "\n--- " + jsonPod("b"), []string{"a-node-1", "b-node-1"}, nil},
		{"JSON documents", jsonPod("a") + "\n---\n" + jsonPod("b"), []string{"a-node-1", "b-node-1"}, nil},
		{"marker in a block of text", yamlPod("a") + "    args:\n    - |\n      ---\n      x\n---\n" + yamlPod("b"), []string{"a-node-1", "b-node-1"}, nil},
		{"old line ends", strings.ReplaceAll(yamlPod("a")+"---\n"+yamlPod("b"), "\n", "\r"), []string{"a-node-1", "b-node-1"}, nil},
		{"new line ends", strings.ReplaceAll(yamlPod("a")+"---\n"+yamlPod("b"), "\n", "\u0085"), []string{"a-node-1", "b-node-1"}, nil},
		{"a bad pod costs itself", yamlPod("a") + "---\n" + bad + "---\n" + yamlPod("b"), []string{"a-node-1", "b-node-1"},
			[]string{"document 2, line 17: pod default/bad-node-1: invalid pod: spec.containers[0].image: Required value"}},
		{"bad syntax costs itself", "a: [\n---\n" + yamlPod("b"), []string{"b-node-1"},
			[]string{"document 1, line 1: not valid YAML: did not find expected node content"}},
		{"bad syntax in the second document", yamlPod("a") + "---\nkind: Pod\n\tx: y\n", []string{"a-node-1"},
			[]string{"document 2, line 11: not valid YAML: found a tab character that violates indentation"}},
		{"bad JSON", "{\n\"kind\": \"Pod\",\n}", []string{}, []string{"document 1, line 3: not valid JSON"}},
		{"two JSON objects without a marker", jsonPod("a") + "\n" + jsonPod("b"), []string{}, []string{"document 1, line 2: not valid JSON"}},
		{"wrong type of a field", strings.Replace(yamlPod("a"), "x:1", "5", 1), []string{},
			[]string{"document 1, line 6: spec.containers.image: a number where a string is expected"}},
		{"a list for a string", strings.Replace(yamlPod("a"), "x:1", "[]", 1), []string{},
			[]string{"document 1, line 6: spec.containers.image: a list where a string is expected"}},
		{"a string for a number", strings.Replace(yamlPod("a"), "x:1", "x\n    ports: [{containerPort: web}]", 1), []string{},
			[]string{"document 1, line 6: spec.containers.ports.containerPort: a string where a number is expected"}},
		{"a boolean for an object", strings.Replace(yamlPod("a"), "name: a", "name: a\n  labels: true", 1), []string{},
			[]string{"document 1, line 5: metadata.labels: a boolean where an object is expected"}},
		{"an object for a boolean", yamlPod("a") + "  hostNetwork: {}\n", []string{},
			[]string{"document 1, line 9: spec.hostNetwork: an object where a boolean is expected"}},
		{"wrong type of a document", "hello", []string{}, []string{"document 1, line 1: a string where an object is expected"}},
		{"another kind", "apiVersion: v1\nkind: ConfigMap\n---\n" + yamlPod("a"), []string{"a-node-1"},
			[]string{"document 1, line 1: apiVersion and kind must be v1 and Pod, PodList or List"}},
		{"another version", strings.Replace(yamlPod("a"), "v1", "v2", 1), []string{},
			[]string{"document 1, line 1: apiVersion and kind must be v1 and Pod, PodList or List"}},
		{"no name", strings.Replace(yamlPod("a"), "name: a", "generateName: a", 1), []string{},
			[]string{"document 1, line 1: a static pod needs a name, and a generateName is none"}},
		{"slashes in the name", yamlPod("a/../b"), []string{},
			[]string{"document 1, line 4: invalid pod: metadata.name: Invalid value: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"}},
		{"reference", yamlPod("a") + "  serviceAccountName: x\n", []string{},
			[]string{"document 1, line 1: pod default/a-node-1: a static pod cannot refer to an object of the API, and this one refers to a service account"}},
		{"path in the UID", strings.Replace(yamlPod("a"), "name: a", "name: a\n  uid: ../x", 1), []string{},
			[]string{"document 1, line 5: invalid pod: metadata.uid: Invalid value: a node names a folder by it: at most 253 bytes without '/', '\\' and control characters, and not '.' or '..'"}},
		{"line of a field behind an alias", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nx: &c\n  name: c\n  image: ''\nspec:\n  containers:\n  - *c\n", []string{},
			[]string{"document 1, line 6: pod default/a-node-1: invalid pod: spec.containers[0].image: Required value"}},
		{"line of JSON that is no YAML", "{\"apiVersion\":\"v1\",\n\t\"kind\":\"Pod\",\n\t\"metadata\":{\"name\":\"a\"}}", []string{},
			[]string{"document 1, line 1: pod default/a-node-1: invalid pod: spec.containers: Required value"}},
		{"special keys", strings.Replace(yamlPod("a"), "spec:", ".inf: a\n-.inf: b\n.nan: c\n1: d\nfalse: e\n12345678901: f\nspec:", 1), []string{"a-node-1"}, nil},
		{"value that JSON has not", "a: .nan\n", []string{}, []string{"document 1, line 1: holds a value that JSON has not"}},
		{"empty", "", []string{}, []string{": manifest has no document; a PodList without items says that there are no pods"}},
		{"only comments", "# a\n---\n# b\n", []string{}, []string{": manifest has no document; a PodList without items says that there are no pods"}},
		{"only null", "null\n", []string{}, []string{": manifest has no document; a PodList without items says that there are no pods"}},
		{"PodList of none", "apiVersion: v1\nkind: PodList\nitems: []\n", []string{}, nil},
		{"List of none", `{"apiVersion":"v1","kind":"List"}`, []string{}, nil},
		{"PodList", `{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"x"}]}},` + jsonPod("b") + `]}`,
			[]string{"a-node-1", "b-node-1"}, nil},
		{"List", `{"apiVersion":"v1","kind":"List","items":[` + jsonPod("a") + `,` + jsonPod("b") + `]}`, []string{"a-node-1", "b-node-1"}, nil},
		{"a bad item costs itself", "apiVersion: v1\nkind: List\nitems:\n- " + jsonPod("a") + "\n- {kind: Pod}\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: B\n",
			[]string{"a-node-1"}, []string{
				"document 1, line 5, item 2: apiVersion and kind of an item must be v1 and Pod",
				"document 1, line 9, item 3: invalid pod: metadata.name: Invalid value: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), spec.containers: Required value",
			}},
		{"another kind in a PodList", "apiVersion: v1\nkind: PodList\nitems:\n- kind: Secret\n- 5\n", []string{}, []string{
			"document 1, line 4, item 1: apiVersion and kind of an item must be v1 and Pod",
			"document 1, line 5, item 2: a number where an object is expected",
		}},
		{"list in a list", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"List","items":[]}]}`, []string{},
			[]string{"document 1, line 1, item 1: apiVersion and kind of an item must be v1 and Pod"}},
		{"items of another type", "apiVersion: v1\nkind: PodList\nitems: 5\n", []string{}, []string{"document 1, line 3: items: a number where a list is expected"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			pods, rejected := fromFile.Decode("m.yaml", []byte(row.manifest))
			require.Equal(t, row.pods, podNames(pods))
			require.ElementsMatch(t, row.rejected, texts(t, rejected))
		})
	}
}

// The rules by which the kubelet reads one document, each with a manifest that it accepts or
// rejects.
func TestDecodeLikeKubelet(t *testing.T) {
	withField := func(field string) string { return yamlPod("a") + field + "\n" }
	for _, row := range []struct {
		name     string
		manifest string
		accepted bool
	}{
		{"flow style is JSON", "{apiVersion: v1}", false},
		{"flow style after a mark is YAML", "\uFEFF{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: x}]}}", true},
		{"comment in JSON", jsonPod("a") + " # comment", false},
		{"keys in another case", strings.Replace(jsonPod("a"), `"image"`, `"Image"`, 1), false},
		{"type in another case", strings.Replace(jsonPod("a"), `"kind"`, `"KIND"`, 1), true},
		{"unknown fields", withField("  unknown: 1"), true},
		{"the last of two keys", yamlPod("a") + "spec:\n  containers:\n  - {name: c, image: z}\n", true},
		{"a bad last of two keys", yamlPod("a") + "spec: {}\n", false},
		{"booleans of YAML 1.1", withField("  hostNetwork: on"), true},
		{"octal numbers of YAML 1.1", withField("  terminationGracePeriodSeconds: 0600"), true},
		{"octal numbers of YAML 1.2", withField("  terminationGracePeriodSeconds: 0o600"), true},
		{"grouped digits", withField("  terminationGracePeriodSeconds: 8_080"), true},
		{"whole floats", withField("  terminationGracePeriodSeconds: 8e1"), true},
		{"broken floats", withField("  terminationGracePeriodSeconds: 8.5"), false},
		{"sexagesimal numbers", withField("  terminationGracePeriodSeconds: 1:30"), false},
		{"dates are strings", withField("  schedulerName: 2020-01-01"), true},
		{"numbers as keys", withField("  nodeSelector: {8080: \"1\", 1.5: \"2\", true: \"3\"}"), true},
		{"null as a key", withField("  nodeSelector: {null: \"1\"}"), false},
		{"number as a string", withField("  nodeSelector: {a: 1}"), false},
		{"directive of YAML 1.2", "%YAML 1.2\n---\n" + yamlPod("a"), false},
		{"tabs", strings.ReplaceAll(yamlPod("a"), "  name", "\tname"), false},
		{"NUL", yamlPod("a") + "\x00", false},
		{"invalid UTF-8 in YAML", withField("  schedulerName: \"\xff\""), false},
		{"invalid UTF-8 in JSON", strings.Replace(jsonPod("a"), `"spec":{`, "\"spec\":{\"schedulerName\":\"\xff\",", 1), true},
		{"CRLF", strings.ReplaceAll(yamlPod("a"), "\n", "\r\n"), true},
		{"first document is empty", "---\n---\n" + yamlPod("a"), false},
		{"second document is broken", yamlPod("a") + "---\n{[\n", true},
		{"any UID", strings.Replace(yamlPod("a"), "name: a", "name: a\n  uid: not a uuid/../x", 1), true},
		{"name that ends in the suffix", strings.ReplaceAll(yamlPod("web-"), "NAME", ""), true},
		{"longest name", yamlPod(strings.Repeat("a", 246)), true},
		{"name too long", yamlPod(strings.Repeat("a", 247)), false},
		{"scheduling gates", withField("  schedulingGates: [{name: a}]"), false},
		// the kubelet takes it
		{"internal version", strings.Replace(yamlPod("a"), "v1", "__internal", 1), false},
		{"empty", "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, decoder := range []manifest.Decoder{fromFile, fromHTTP} {
				pods, rejected := likeKubelet(decoder).Decode("m.yaml", []byte(row.manifest))
				require.Equal(t, row.accepted, len(pods) == 1, "%v", rejected)
				require.Equal(t, row.accepted, len(rejected) == 0)
			}
		})
	}
}

func TestDecodeLists(t *testing.T) {
	good := `{"apiVersion":"v1","kind":"PodList","items":[` + jsonPod("a") + `,` + jsonPod("b") + `]}`
	oneBad := `{"apiVersion":"v1","kind":"PodList","items":[` + jsonPod("a") + `,{},` + jsonPod("B") + `]}`
	pods, rejected := likeKubelet(fromHTTP).Decode("m.yaml", []byte(good))
	require.Equal(t, []string{"a-node-1", "b-node-1"}, podNames(pods))
	require.Empty(t, rejected)

	pods, rejected = likeKubelet(fromHTTP).Decode("m.yaml", []byte(oneBad))
	require.Empty(t, pods)
	require.Len(t, rejected, 1)
	require.Equal(t, 2, rejected[0].Item)

	pods, rejected = fromHTTP.Decode("m.yaml", []byte(oneBad))
	require.Equal(t, []string{"a-node-1"}, podNames(pods))
	require.Len(t, rejected, 2)

	pods, rejected = likeKubelet(fromFile).Decode("m.yaml", []byte(good))
	require.Empty(t, pods)
	require.Len(t, rejected, 1)
}

func protobuf(t *testing.T, kind string, object interface{ Marshal() ([]byte, error) }) []byte {
	raw, err := object.Marshal()
	require.NoError(t, err)
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	data, err := envelope.Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), data...)
}

func TestDecodeProtobuf(t *testing.T) {
	pod := func(name string) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}}}
	}
	remaining := int64(1)
	list := corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1", RemainingItemCount: &remaining}, Items: []corev1.Pod{pod("a"), pod("B"), pod("c")}}
	data := protobuf(t, "PodList", &list)
	pods, rejected := fromHTTP.Decode("m.yaml", data)
	require.Equal(t, []string{"a-node-1", "c-node-1"}, podNames(pods))
	require.Len(t, rejected, 1)
	require.Equal(t, 2, rejected[0].Item)

	pods, rejected = likeKubelet(fromHTTP).Decode("m.yaml", data)
	require.Empty(t, pods)
	require.Len(t, rejected, 1)
	_, rejected = likeKubelet(fromFile).Decode("m.yaml", data)
	require.Len(t, rejected, 1)

	list.Items = list.Items[:1]
	pods, rejected = likeKubelet(fromHTTP).Decode("m.yaml", protobuf(t, "PodList", &list))
	require.Empty(t, rejected)
	require.Equal(t, []string{"a-node-1"}, podNames(pods))

	unknownFields := protobuf(t, "PodList", raw("\x1a\x01x\x25abcd\x29abcdefgh\x30\x05"))
	pods, rejected = likeKubelet(fromHTTP).Decode("m.yaml", unknownFields)
	require.Empty(t, pods)
	require.Empty(t, rejected)
	pods, rejected = fromHTTP.Decode("m.yaml", unknownFields)
	require.Empty(t, pods)
	require.Empty(t, rejected)

	single := pod("a")
	pods, rejected = fromHTTP.Decode("m.yaml", protobuf(t, "Pod", &single))
	require.Empty(t, rejected)
	require.Equal(t, []string{"a-node-1"}, podNames(pods))
	_, rejected = likeKubelet(fromHTTP).Decode("m.yaml", protobuf(t, "Pod", &single))
	require.Len(t, rejected, 1)

	for name, broken := range map[string][]byte{
		"another kind":     protobuf(t, "Secret", &single),
		"broken envelope":  []byte("k8s\x00\xff"),
		"broken list":      protobuf(t, "PodList", raw("\xff")),
		"long item":        protobuf(t, "PodList", raw("\x12\x05a")),
		"short number":     protobuf(t, "PodList", raw("\x15\x01")),
		"unknown format":   protobuf(t, "PodList", raw("\x17")),
		"too many items":   protobuf(t, "PodList", raw(strings.Repeat("\x12\x00", 1<<15))),
		"truncated length": protobuf(t, "PodList", raw("\x12")),
		"broken item":      protobuf(t, "PodList", raw("\x12\x01\xff")),
		"broken pod":       protobuf(t, "Pod", raw("\xff")),
	} {
		pods, rejected := fromHTTP.Decode("m.yaml", broken)
		require.Empty(t, pods, name)
		require.Len(t, rejected, 1, name)
	}
}

// raw is a message that is what it is.
type raw string

func (r raw) Marshal() ([]byte, error) { return []byte(r), nil }

func TestDecodeUTF16(t *testing.T) {
	for name, order := range map[string]func(uint16) []byte{
		"little endian": func(u uint16) []byte { return []byte{byte(u), byte(u >> 8)} },
		"big endian":    func(u uint16) []byte { return []byte{byte(u >> 8), byte(u)} },
	} {
		var data []byte
		for _, unit := range utf16.Encode([]rune("\uFEFF" + yamlPod("a") + "---\n" + yamlPod("b"))) {
			data = append(data, order(unit)...)
		}
		pods, rejected := fromFile.Decode("m.yaml", data)
		require.Empty(t, rejected, name)
		require.Equal(t, []string{"a-node-1", "b-node-1"}, podNames(pods), name)
		pods, rejected = likeKubelet(fromFile).Decode("m.yaml", data)
		require.Empty(t, rejected, name)
		require.Equal(t, []string{"a-node-1"}, podNames(pods), name)
	}
}

func TestDecodeBindsToNode(t *testing.T) {
	decoder := manifest.Decoder{Node: "Node-1", Source: manifest.SourceFile}
	pods, rejected := decoder.Decode("m.yaml", []byte(strings.Replace(yamlPod("a"), "spec:", "spec:\n  nodeName: other\n  tolerations:\n  - {operator: Exists, effect: NoExecute, tolerationSeconds: 5}\n  - {operator: Exists, effect: NoSchedule}", 1)))
	require.Empty(t, pods, "the name of a node is in lower case")
	require.Len(t, rejected, 1)

	decoder.Node = "node-1"
	pods, rejected = decoder.Decode("m.yaml", []byte(strings.Replace(yamlPod("a"), "spec:", "spec:\n  nodeName: other\n  tolerations:\n  - {operator: Exists, effect: NoExecute, tolerationSeconds: 5}\n  - {operator: Exists, effect: NoSchedule}", 1)))
	require.Empty(t, rejected)
	pod := pods[0]
	require.Equal(t, "default/a-node-1", pod.Namespace+"/"+pod.Name)
	require.Equal(t, "node-1", pod.Spec.NodeName)
	require.Equal(t, corev1.PodPending, pod.Status.Phase)
	require.Equal(t, string(pod.UID), pod.Annotations[manifest.HashAnnotation])
	require.NotContains(t, pod.Annotations, manifest.SourceAnnotation)
	require.NotContains(t, pod.Annotations, manifest.SeenAnnotation)
	require.Equal(t, []corev1.Toleration{
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	}, pod.Spec.Tolerations)

	pods, _ = fromHTTP.Decode("m.yaml", []byte(yamlPod("a")))
	require.Empty(t, pods[0].Spec.Tolerations, "a pod from a URL can be evicted")
}

func TestDecodeSize(t *testing.T) {
	pad := func(n int) []byte {
		return append([]byte(yamlPod("a")), bytes.Repeat([]byte("#"), n-len(yamlPod("a")))...)
	}
	for _, decoder := range []manifest.Decoder{fromFile, likeKubelet(fromHTTP)} {
		pods, rejected := decoder.Decode("m.yaml", pad(manifest.MaxSize-1))
		require.Len(t, pods, 1)
		require.Empty(t, rejected)
		pods, rejected = decoder.Decode("m.yaml", pad(manifest.MaxSize))
		require.Empty(t, pods)
		require.Len(t, rejected, 1)
		require.ErrorIs(t, rejected[0], manifest.ErrTooLarge)
	}
}

// A small manifest must not become a large one: the text of an alias is written out at each of its
// uses, and every empty object is a struct.
func TestDecodeBombs(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	for _, row := range []struct{ name, bomb, want, kubelet string }{
		{"aliases of aliases", laughs.String(), ", document 1, line 1: not valid YAML: document contains excessive aliasing", ""},
		{"aliases of a text", "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,x,", 5000) + "]\n", ", document 1, line 1: manifest is too large", ""},
		{"objects", `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[` + strings.Repeat("{},", 1<<20) + `{}]}}`, ", document 1, line 1: manifest is too large", ""},
		{"documents", strings.Repeat("---\na\n", 1<<15), ": manifest is too large",
			", document 1, line 1: a string where an object is expected"},
		{"items", `{"apiVersion":"v1","kind":"PodList","items":[` + strings.Repeat("{},", 1<<15) + `{}]}`,
			", document 1, line 1: manifest is too large", ", document 1, line 1: apiVersion and kind must be v1 and Pod, or over HTTP PodList"},
		{"deep JSON", strings.Repeat(`{"a":`, 1<<16), ", document 1, line 1: not valid JSON", ""},
		{"deep JSON that is closed", strings.Repeat(`{"a":`, 1<<14) + "1" + strings.Repeat("}", 1<<14), ", document 1, line 1: not valid JSON", ""},
		{"deep YAML", "a: " + strings.Repeat("[", 1<<16), ", document 1, line 1: not valid YAML: exceeded max depth of 10000", ""},
		{"deep pairs", strings.Repeat("- ", 1<<16), ", document 1, line 1: not valid YAML: exceeded max depth of 10000", ""},
	} {
		for _, decoder := range []manifest.Decoder{fromFile, likeKubelet(fromFile)} {
			pods, rejected := decoder.Decode("m.yaml", []byte(row.bomb))
			require.Empty(t, pods, row.name)
			require.Len(t, rejected, 1, row.name)
			want := row.want
			if decoder.LikeKubelet && row.kubelet != "" {
				want = row.kubelet
			}
			require.EqualError(t, rejected[0], "m.yaml"+want, row.name)
		}
	}
}

// The UID of a pod must survive upgrades of this package, of Go and of the API, or all static pods
// of a node restart.
func TestUIDIsStable(t *testing.T) {
	uid := func(d manifest.Decoder, path, text string) string {
		pods, rejected := d.Decode(path, []byte(text))
		require.Empty(t, rejected)
		return string(pods[0].UID)
	}
	want := uid(fromFile, "/etc/m.yaml", yamlPod("a"))
	require.Regexp(t, "^[0-9a-f]{32}$", want)
	require.Equal(t, "56768d1a24c648888e611af8e974ea0c", want)
	require.Equal(t, want, uid(fromFile, "/etc/m.yaml", jsonPod("a")), "another syntax")
	require.Equal(t, want, uid(likeKubelet(fromFile), "/etc/m.yaml", yamlPod("a")), "another mode")
	require.Equal(t, want, uid(fromFile, "/etc/m.yaml", "# comment\n"+yamlPod("a")+"  restartPolicy: Always\n"), "a default written out")

	others := map[string]string{}
	for name, other := range map[string]string{
		"path":    uid(fromFile, "/etc/n.yaml", yamlPod("a")),
		"source":  uid(fromHTTP, "/etc/m.yaml", yamlPod("a")),
		"node":    uid(manifest.Decoder{Node: "node-2", Source: manifest.SourceFile}, "/etc/m.yaml", yamlPod("a")),
		"content": uid(fromFile, "/etc/m.yaml", yamlPod("a")+"  hostname: h\n"),
		"name":    uid(fromFile, "/etc/m.yaml", yamlPod("b")),
	} {
		require.NotEqual(t, want, other, name)
		require.NotContains(t, others, other, "%s and %s", name, others[other])
		others[other] = name
	}
	rich := "81352b78f2d0ab794141cad84deb696d"
	require.Equal(t, rich, uid(fromFile, "/etc/m.yaml", yamlPod("a")+`    resources: {limits: {cpu: "1", memory: 64Mi}}
    env: [{name: A, value: "<&>"}]
  nodeSelector: {z: "1", a: "2"}
  volumes: [{name: v, emptyDir: {sizeLimit: 1Gi}}]
  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: t, labelSelector: {}}]}}
`))
	require.Equal(t, "mine", uid(fromFile, "/etc/m.yaml", strings.Replace(yamlPod("a"), "name: a", "name: a\n  uid: mine", 1)))
}

// What a manifest says must not get into logs by way of errors, wherever it says it.
func TestErrorsRepeatNothing(t *testing.T) {
	const secret = "hunter2"
	for name, text := range map[string]string{
		"anchor":            "a: *hunter2\n",
		"tag":               "a: !!int hunter2\n",
		"tag handle":        "a: !hunter2!x y\n",
		"map key":           "? [hunter2]\n: a\n",
		"kind":              "apiVersion: hunter2/a/b\nkind: Pod\n",
		"scalar":            "hunter2",
		"JSON":              "{hunter2",
		"quantity":          yamlPod("a") + "    resources: {limits: {cpu: hunter2}}\n",
		"time":              strings.Replace(yamlPod("a"), "name: a", "name: a\n  creationTimestamp: hunter2", 1),
		"number":            yamlPod("a") + "  terminationGracePeriodSeconds: hunter2\n",
		"port":              yamlPod("a") + "    livenessProbe: {httpGet: {port: hunter2}}\n    env: [{name: \"=hunter2\"}]\n",
		"annotation":        strings.Replace(yamlPod("a"), "name: a", "name: a\n  annotations: {container.seccomp.security.alpha.kubernetes.io/c: hunter2}", 1),
		"bytes":             strings.Replace(yamlPod("a"), "name: a", "name: a\n  managedFields: [{fieldsV1: hunter2}]", 1),
		"name":              yamlPod("hunter2_"),
		"volume in a union": yamlPod("a") + "  volumes: [{name: hunter2_, nfs: {server: hunter2, path: hunter2}}]\n",
	} {
		for _, decoder := range []manifest.Decoder{fromFile, likeKubelet(fromHTTP)} {
			_, rejected := decoder.Decode("m.yaml", []byte(text))
			require.Len(t, rejected, 1, name)
			require.NotContains(t, rejected[0].Error(), secret, name)
		}
	}
}

func TestErrorTextIsBounded(t *testing.T) {
	var spec strings.Builder
	spec.WriteString("  nodeSelector: {}\n  overhead: {" + strings.Repeat("k", 1000) + ": 1}\n  tolerations:\n")
	for range 1000 {
		spec.WriteString("  - {}\n")
	}
	_, rejected := fromFile.Decode("m.yaml", []byte(yamlPod("a")+spec.String()))
	require.Len(t, rejected, 1)
	require.Less(t, len(rejected[0].Error()), 64<<10)
	require.Contains(t, rejected[0].Error(), "and 224 more")
	require.Equal(t, "default/a-node-1", rejected[0].Pod)
	require.NotNil(t, errors.Unwrap(rejected[0]))
}

func TestDecodedPodsShareNothing(t *testing.T) {
	data := []byte(yamlPod("a") + "---\n" + yamlPod("a"))
	pods, _ := fromFile.Decode("m.yaml", data)
	clear(data)
	before, err := json.Marshal(pods[1])
	require.NoError(t, err)
	pods[0].Annotations["a"] = "b"
	pods[0].Spec.Containers[0].Name = "z"
	*pods[0].Spec.TerminationGracePeriodSeconds = 7
	after, err := json.Marshal(pods[1])
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}
