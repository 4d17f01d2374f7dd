package manifest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	machinery "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/tributary-go/tributary/sources/manifest"
)

// maxGrowth is what decoding may allocate for each byte of a manifest, and maxBase for none.
const (
	maxGrowth = 4096
	maxBase   = 64 << 20
)

// FuzzDecode proves that no bytes make a Decoder panic or allocate out of proportion, and that what
// it gives are pods that the API machinery can write and read again without a difference. What the
// kubelet would accept, the API machinery accepts.
func FuzzDecode(f *testing.F) {
	inputs, err := filepath.Glob("testdata/manifests/*")
	require.NoError(f, err)
	changed, err := filepath.Glob("testdata/releases/manifests/*")
	require.NoError(f, err)
	newest := likeKubelet(fromHTTP)
	newest.Release = releaseOf(f, "1.38")
	for _, input := range append(inputs, changed...) {
		data, err := os.ReadFile(input)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte("k8s\x00\n\r\n\x02v1\x12\aPodList\x12\x04\x12\x02\n\x00"))
	f.Add([]byte("--- {}\n...\n%YAML 1.1\n---\r\x85"))
	scheme := machinery.NewScheme()
	require.NoError(f, corev1.AddToScheme(scheme))
	codec := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, decoder := range []manifest.Decoder{fromFile, likeKubelet(fromFile), likeKubelet(fromHTTP), newest} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			pods, rejected := decoder.Decode("m.yaml", data)
			runtime.ReadMemStats(&after)
			require.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, uint64(maxBase+maxGrowth*len(data)))
			for _, err := range rejected {
				require.NotEmpty(t, err.Error())
			}
			for _, pod := range pods {
				checkPod(t, codec, decoder, pod)
			}
			if decoder.LikeKubelet && len(rejected) == 0 {
				require.NoError(t, refused(codec, data), "accepted, and the API machinery refuses it")
			}
		}
	})
}

// refused says why the API machinery would not decode a manifest, nor what its YAML is in JSON.
func refused(codec machinery.Decoder, data []byte) error {
	if _, _, err := codec.Decode(data, nil, nil); err == nil {
		return nil
	}
	converted, err := yaml.ToJSON(data)
	if err == nil {
		_, _, err = codec.Decode(converted, nil, nil)
	}
	return err
}

func checkPod(t *testing.T, codec machinery.Decoder, decoder manifest.Decoder, pod *corev1.Pod) {
	require.NotEmpty(t, pod.UID)
	require.Equal(t, decoder.Node, pod.Spec.NodeName)
	typed := pod.DeepCopy()
	typed.APIVersion, typed.Kind = "", "" // which an item of a list may keep
	text, err := json.Marshal(typed)
	require.NoError(t, err)
	typed.APIVersion, typed.Kind = "v1", "Pod"
	data, err := json.Marshal(typed)
	require.NoError(t, err)
	object, _, err := codec.Decode(data, nil, nil)
	require.NoError(t, err)
	read := object.(*corev1.Pod)
	read.APIVersion, read.Kind = "", ""
	again, err := json.Marshal(read)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(again))
}
