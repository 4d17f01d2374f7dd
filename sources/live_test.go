package sources_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
)

// watched is a scripted source that reads from a kubelet.
type watched struct{ *scripted }

func (watched) HoldsStatus() {}

// edits make a pod of a source; nil: the source has none.
type edits []func(*corev1.Pod)

func version(version string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.ResourceVersion = version }
}

func since(second int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = ptr.To(metav1.Unix(second, 0)) }
}

func created(second int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.Unix(second, 0) }
}

func ofManifest(p *corev1.Pod) {
	p.Annotations = map[string]string{manifest.SourceAnnotation: "file", manifest.HashAnnotation: "h"}
}

// TestMergedWithAKubelet: metadata and spec are the API server's, and the status is the kubelet's,
// unless the other one is newer.
func TestMergedWithAKubelet(t *testing.T) {
	for name, row := range map[string]struct {
		api, file, kubelet  edits // nil: it has no pod
		podFrom, statusFrom string
		sources             []string
		live                bool
	}{
		"equally new": {api: edits{version("7"), since(5)}, kubelet: edits{version("7"), since(5)},
			podFrom: "api", statusFrom: "kubelet", sources: []string{"api", "kubelet"}, live: true},
		"the kubelet is polled, and behind": {api: edits{version("8"), since(5)}, kubelet: edits{version("7"), since(4)},
			podFrom: "api", statusFrom: "api", sources: []string{"api", "kubelet"}, live: true},
		"the kubelet knows more than the server": {api: edits{version("8"), since(5)}, kubelet: edits{version("7"), since(6)},
			podFrom: "api", statusFrom: "kubelet", sources: []string{"api", "kubelet"}, live: true},
		"the API server is cut off": {api: edits{version("9")}, kubelet: edits{version("10")},
			podFrom: "kubelet", statusFrom: "kubelet", sources: []string{"api", "kubelet"}, live: true},
		"a finished pod": {api: edits{version("7"), phase("Succeeded")}, kubelet: edits{version("7"), since(9)},
			podFrom: "api", statusFrom: "api", sources: []string{"api", "kubelet"}, live: true},
		"only the kubelet still has it": {kubelet: edits{version("7")},
			podFrom: "kubelet", statusFrom: "kubelet", sources: []string{"kubelet"}, live: true},
		"not there yet": {api: edits{version("7")},
			podFrom: "api", statusFrom: "api", sources: []string{"api"}},
		"recreated, and the kubelet ends the old pod": {api: edits{uid("new"), created(5)}, kubelet: edits{uid("old"), created(1), since(9)},
			podFrom: "api", statusFrom: "api", sources: []string{"api", "kubelet"}},
		"recreated, while the API server is cut off": {api: edits{uid("old"), created(1)}, kubelet: edits{uid("new"), created(5)},
			podFrom: "kubelet", statusFrom: "kubelet", sources: []string{"api", "kubelet"}, live: true},
		"a static pod": {api: edits{uid("mirror"), annotation(manifest.MirrorAnnotation, "h"), since(4)}, file: edits{uid("ours"), ofManifest}, kubelet: edits{uid("theirs"), ofManifest, since(5)},
			podFrom: "file", statusFrom: "kubelet", sources: []string{"file", "kubelet"}, live: true},
		"a static pod without its manifest": {api: edits{uid("mirror"), annotation(manifest.MirrorAnnotation, "h"), since(6)}, kubelet: edits{uid("theirs"), ofManifest, since(5)},
			podFrom: "kubelet", statusFrom: "api", sources: []string{"kubelet"}, live: true},
	} {
		t.Run(name, func(t *testing.T) {
			api, file, kubelet := newScripted(sources.APISource), newScripted(sources.FileSource), newScripted(sources.KubeletSource)
			r := start(t, sources.Custom(holder{api}), sources.Custom(file), sources.Custom(watched{kubelet}))
			for source, pod := range map[*scripted]edits{api: row.api, file: row.file, kubelet: row.kubelet} {
				var pods []*corev1.Pod
				if pod != nil {
					pods = append(pods, podOf("web", "v1", pod...))
				}
				source.set(t, pods...)
				r.update()
			}
			merged := r.Merged()
			require.Len(t, merged, 1)
			got := merged[0]
			require.Equal(t, row.podFrom, got.PodFrom)
			require.Equal(t, row.statusFrom, got.StatusFrom)
			require.Equal(t, row.sources, got.Sources)
			require.Equal(t, row.live, got.Live != nil)
			holders := map[string]*corev1.Pod{got.PodFrom: got.Pod, sources.KubeletSource: got.Live}
			if got.Mirror != nil {
				require.Equal(t, "h", got.Pod.Annotations[manifest.HashAnnotation])
				require.True(t, got.MirrorCurrent)
				holders[sources.APISource] = got.Mirror
			}
			require.Equal(t, holders[got.StatusFrom].Status, got.Status())
		})
	}
}
