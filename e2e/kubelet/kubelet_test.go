// Package kubelet_test holds the decoder of static pods beside the kubelet's own pod sources: the
// same manifests, with the same outcome.
package kubelet_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/sources/manifest"
)

// kubelet is the kubelet's own pod sources, in a process of their own.
type kubelet struct {
	in  io.Writer
	out *bufio.Reader
}

func startKubelet(t *testing.T) *kubelet {
	t.Helper()
	command := exec.Command(cluster.PodSource(t)) // it ends with its input
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	require.NoError(t, err)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, command.Wait())
	})
	return &kubelet{in, bufio.NewReader(out)}
}

// outcome is what became of a manifest.
type outcome struct {
	Rejected string            `json:"rejected"`
	Fields   []string          `json:"fields"` // that the rejection is about
	Pods     []json.RawMessage `json:"pods"`
}

func (k *kubelet) ask(t *testing.T, source string, data []byte) (o outcome) {
	k.answer(t, map[string]any{"source": source, "manifest": data}, &o)
	return o
}

func (k *kubelet) answer(t *testing.T, question, answer any) {
	t.Helper()
	line, err := json.Marshal(question)
	require.NoError(t, err)
	_, err = k.in.Write(append(line, '\n'))
	require.NoError(t, err)
	line, err = k.out.ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, answer))
}

// asked is the release of the kubelet that is asked here.
const asked = "1.36"

func ours(t *testing.T, source string, data []byte) (o outcome) {
	release, err := manifest.ParseRelease(asked)
	require.NoError(t, err)
	pods, rejected := manifest.Decoder{Node: "node-1", Source: source, LikeKubelet: true, Release: release}.Decode("/manifests/pod", data)
	for _, pod := range pods {
		data, err := json.Marshal(pod)
		require.NoError(t, err)
		o.Pods = append(o.Pods, data)
	}
	for _, err := range rejected {
		o.Rejected += err.Error()
		o.Fields = append(o.Fields, err.Fields()...)
	}
	return o
}

// differs says how ours is not the kubelet's; empty if it is.
func differs(t *testing.T, kubelet, ours outcome) string {
	if (kubelet.Rejected == "") != (ours.Rejected == "") || len(kubelet.Pods) != len(ours.Pods) {
		return fmt.Sprintf("%d pods, rejected %q; the kubelet: %d pods, rejected %q", len(ours.Pods), ours.Rejected, len(kubelet.Pods), clip(kubelet.Rejected))
	}
	if strings.Contains(ours.Rejected, "apiVersion and kind must be") {
		return "" // the kubelet may name a field of whatever else it is
	}
	if want, got := kubelet.paths(), ours.paths(); !slices.Equal(want, got) {
		return fmt.Sprintf("the rejection names %q; the kubelet's %q: %q; the kubelet: %q", got, want, ours.Rejected, clip(kubelet.Rejected))
	}
	for i := range ours.Pods {
		if want, got := comparable(t, kubelet.Pods[i]), comparable(t, ours.Pods[i]); want != got {
			return fmt.Sprintf("pod %d is\n%s\nthe kubelet's\n%s", i+1, got, want)
		}
	}
	return ""
}

func clip(s string) string { return s[:min(len(s), 1500)] }

// wrongType finds the field in the text of the JSON decoder, which quotes nothing of the manifest
// but numbers.
var wrongType = regexp.MustCompile(`json: cannot unmarshal [^:]*? into Go struct field \w*\.([\w.]+) of type`)

// paths are the fields that a rejection is about, in order and once each.
func (o outcome) paths() []string {
	paths := o.Fields
	if found := wrongType.FindStringSubmatch(o.Rejected); found != nil && len(paths) == 0 {
		paths = []string{found[1]}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// comparable drops from a pod what differs from run to run, and what is only written in another
// way.
func comparable(t *testing.T, data []byte) string {
	var pod corev1.Pod
	require.NoError(t, json.Unmarshal(data, &pod))
	pod.UID = ""
	for _, key := range []string{manifest.HashAnnotation, manifest.SeenAnnotation, manifest.SourceAnnotation} {
		delete(pod.Annotations, key)
	}
	canonical, err := json.Marshal(&pod)
	require.NoError(t, err)
	return string(canonical)
}

var kinds = []string{manifest.SourceFile, manifest.SourceHTTP}

// TestCorpusIsTheKubelets: the recorded outcomes are those of the kubelet that is asked here.
func TestCorpusIsTheKubelets(t *testing.T) {
	k := startKubelet(t)
	for _, path := range corpus(t) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, source := range kinds {
			if difference := differs(t, k.ask(t, source, data), ours(t, source, data)); difference != "" {
				t.Errorf("%s as %s: %s", filepath.Base(path), source, difference)
			}
		}
	}
}

// settings are the seed and the length of a test: TRIBUTARY_KUBELET_SEED=n replays a run,
// TRIBUTARY_KUBELET_RUNS=n sets the length.
func settings(t *testing.T, length int) (seed uint64, runs int) {
	seed, runs = uint64(time.Now().UnixNano()), length
	if n, err := strconv.ParseUint(os.Getenv("TRIBUTARY_KUBELET_SEED"), 10, 64); err == nil {
		seed = n
	}
	if n, err := strconv.Atoi(os.Getenv("TRIBUTARY_KUBELET_RUNS")); err == nil {
		runs = n
	}
	t.Logf("seed %d", seed)
	return seed, runs
}

// TestLikeTheKubelet: manifests that nobody has thought of.
func TestLikeTheKubelet(t *testing.T) {
	seed, runs := settings(t, 5000)
	k, g := startKubelet(t), newGenerator(t, seed)
	accepted, different := 0, 0
	for i := range runs {
		data, source := g.manifest(), kinds[i%len(kinds)]
		theirs := k.ask(t, source, data)
		if theirs.Rejected == "" {
			accepted++
		}
		mine := ours(t, source, data)
		difference := differs(t, theirs, mine)
		// Of some keys the kubelet keeps one at random.
		for again := 0; difference != "" && again < 32; again++ {
			difference = differs(t, k.ask(t, source, data), mine)
		}
		if difference != "" {
			if different++; different <= 20 {
				t.Errorf("manifest %d as %s, of seed %d:\n%s\n%s", i, source, seed, clip(string(data)), difference)
			}
		}
	}
	t.Logf("%d manifests, of which the kubelet accepted %d; %d differ", runs, accepted, different)
	require.Greater(t, accepted, runs/10, "the manifests are too bad to tell")
	require.Less(t, accepted, runs*9/10, "the manifests are too good to tell")
}
