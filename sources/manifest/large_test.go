package manifest_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/sources/manifest"
)

// inProtobuf puts a message into the envelope of a kind.
func inProtobuf(kind string, message []byte) []byte {
	return append([]byte("k8s\x00"), unknown(kind, message)...)
}

// unknown is a runtime.Unknown in protobuf.
func unknown(kind string, raw []byte) []byte {
	meta := append(lengthed(1, []byte("v1")), lengthed(2, []byte(kind))...)
	return append(lengthed(1, meta), lengthed(2, raw)...)
}

// lengthed is one field of bytes.
func lengthed(field uint64, value []byte) []byte {
	out := binary.AppendUvarint(nil, field<<3|2)
	return append(binary.AppendUvarint(out, uint64(len(value))), value...)
}

// filled repeats a part until a manifest is as large as one may be.
func filled(before, part, after string) func() []byte {
	return func() []byte {
		n := (manifest.MaxSize - 1 - len(before) - len(after)) / len(part)
		return []byte(before + strings.Repeat(part, n) + after)
	}
}

const podJSON = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[`

// greedy are manifests that take as much memory as they can.
var greedy = map[string]func() []byte{
	"empty containers":         filled(podJSON+"{}", ",{}", "]}}"),
	"null containers":          filled(podJSON+"null", ",null", "]}}"),
	"smallest good containers": filled(podJSON+`{"name":"a","image":"a"}`, `,{"name":"a","image":"a"}`, "]}}"),
	"empty arguments":          filled(podJSON+`{"name":"a","image":"a","args":[""`, `,""`, "]}]}}"),
	"empty items":              filled(`{"apiVersion":"v1","kind":"PodList","items":[0`, ",0", "]}"),
	"pods of many containers": filled(`{"apiVersion":"v1","kind":"PodList","items":[{}`,
		`,{"spec":{"containers":[{}`+strings.Repeat(",{}", 32_000)+"]}}", "]}"),
	"pods of many good containers": func() []byte {
		var text strings.Builder
		text.WriteString(`{"apiVersion":"v1","kind":"PodList","items":[{}`)
		for i := 0; text.Len() < manifest.MaxSize-1<<20; i++ {
			fmt.Fprintf(&text, `,{"metadata":{"name":"p%d"},"spec":{"containers":[{"name":"c","image":"a"}`, i)
			for c := range 32_000 {
				fmt.Fprintf(&text, `,{"name":"c%d","image":"a"}`, c)
			}
			text.WriteString("]}}")
		}
		text.WriteString("]}")
		return []byte(text.String())
	},
	"YAML, empty containers in a block": filled("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n", "  - {}\n", ""),
	"YAML, nothing in a block":          filled("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n", "  -\n", ""),
	"YAML, flow":                        filled("apiVersion: v1\nkind: Pod\nspec: {containers: [{}", ",{}", "]}\n"),
	"YAML behind a marker, JSON":        filled("---\n"+podJSON+"{}", ",{}", "]}}"),
	"YAML behind a marker, as much as is parsed": func() []byte {
		return []byte("---\n{apiVersion: v1, kind: Pod, spec: {containers: [{}" + strings.Repeat(",{}", manifest.MaxSize/20-9) + "]}}\n")
	},
	"YAML, lists in lists":       filled("", strings.Repeat("- ", 5000)+"\n", ""),
	"YAML, documents":            filled("", "---\n{}\n", ""),
	"YAML, commas in text":       filled("a: \"", ",", "\""),
	"YAML, as much as is parsed": func() []byte { return []byte(strings.Repeat("-\n", manifest.MaxSize/10-1)) },
	"as many arguments as there may be": func() []byte {
		return []byte(podJSON + `{"name":"a","image":"a","args":[""` + strings.Repeat(`,""`, manifest.MaxSize/10-9) + "]}]}}")
	},
	"anchors": func() []byte {
		return []byte("a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n")
	},
	"protobuf, empty containers": func() []byte {
		return inProtobuf("Pod", lengthed(2, bytes.Repeat(lengthed(2, nil), (manifest.MaxSize-100)/2)))
	},
	"protobuf, empty containers in 3 MiB": func() []byte {
		return inProtobuf("Pod", lengthed(2, bytes.Repeat(lengthed(2, nil), (3<<20-100)/2)))
	},
	"protobuf, empty terms": func() []byte {
		terms := bytes.Repeat(lengthed(1, nil), (3<<20-100)/2)
		return inProtobuf("Pod", lengthed(2, lengthed(18, lengthed(1, lengthed(1, lengthed(1, terms))))))
	},
	"protobuf, empty pods": func() []byte {
		return inProtobuf("PodList", bytes.Repeat(lengthed(2, nil), (manifest.MaxSize-100)/2))
	},
	"protobuf, pods of many containers": func() []byte {
		pod := lengthed(2, lengthed(2, bytes.Repeat(lengthed(2, nil), 32_000)))
		return inProtobuf("PodList", bytes.Repeat(pod, (manifest.MaxSize-100)/len(pod)))
	},
}

// justLong are the greedy ones that are long, and not too large.
var justLong = map[string]bool{
	"pods of many good containers": true, "protobuf, pods of many containers": true, "as many arguments as there may be": true,
}

func requireRefused(t *testing.T, name string) {
	data := greedy[name]()
	require.Less(t, len(data), manifest.MaxSize)
	pods, rejected := fromFile.Decode("m.yaml", data)
	require.NotZero(t, len(pods)+len(rejected))
	if justLong[name] {
		return
	}
	require.Empty(t, pods, name)
	if name == "anchors" || name == "YAML, documents" {
		require.NotEmpty(t, rejected, name)
		return
	}
	require.Len(t, rejected, 1, name)
	require.ErrorIs(t, rejected[0], manifest.ErrTooLarge, name)
}

// What is within reason is not refused.
func TestLargeManifestsThatAreGood(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n")
	for i := range 500 {
		fmt.Fprintf(&text, "  - name: c%d\n    image: a\n    env:\n", i)
		for e := range 20 {
			fmt.Fprintf(&text, "    - {name: E%d, valueFrom: {fieldRef: {fieldPath: metadata.name}}}\n", e)
		}
	}
	fmt.Fprintf(&text, "    args: ['%s']\n", strings.Repeat("a, b, [c], {d: e}\n", 10_000))
	for _, decoder := range []manifest.Decoder{fromFile, likeKubelet(fromFile)} {
		pods, rejected := decoder.Decode("m.yaml", []byte(text.String()))
		require.Empty(t, rejected)
		require.Len(t, pods[0].Spec.Containers, 500)
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	for i := range 500 {
		c := corev1.Container{Name: fmt.Sprint("c", i), Image: "a", Args: []string{strings.Repeat("text ", 200)}}
		for e := range 20 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprint("E", e), Value: "v"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
	}
	raw, err := pod.Marshal()
	require.NoError(t, err)
	pods, rejected := fromFile.Decode("m", inProtobuf("Pod", raw))
	require.Empty(t, rejected)
	require.Len(t, pods[0].Spec.Containers, 500)
}
