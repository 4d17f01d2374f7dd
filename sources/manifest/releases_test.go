package manifest_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources/manifest"
)

var releases = []string{"1.36", "1.37", "1.38"}

func releaseOf(t testing.TB, name string) manifest.Release {
	release, err := manifest.ParseRelease(name)
	require.NoError(t, err)
	return release
}

// recorded is what the kubelets 1.36.3, 1.37.2 and 1.38.0-beta.0 made of a manifest.
type recorded struct {
	name, source, release, path string
	data                        []byte
	want                        golden
	crashed                     bool
}

func (r recorded) String() string { return r.name + " " + r.source + " " + r.release }

// unasked are the pairs of which only the kubelet 1.36.3 was asked.
var unasked = map[string]bool{"meta-uid-colon": true, "spec-scheduling-group": true, "spec-workload-ref": true}

// recordings are all outcomes: of the corpus, and of testdata/releases, which has the fields and
// rules that later releases changed. Its golden.jsonl has an outcome that differs from that of the
// release before, and over HTTP one that differs from that of the file by more than a toleration.
func recordings(t testing.TB) (all []recorded) {
	type line struct {
		Manifest, Source, Release, Crashed string
		golden
	}
	lines := map[string]line{}
	data, err := os.ReadFile("testdata/releases/golden.jsonl")
	require.NoError(t, err)
	for text := range bytes.Lines(data) {
		var l line
		require.NoError(t, json.Unmarshal(text, &l))
		lines[l.Manifest+" "+l.Source+" "+l.Release] = l
	}
	corpus, err := filepath.Glob("testdata/manifests/*")
	require.NoError(t, err)
	changed, err := filepath.Glob("testdata/releases/manifests/*")
	require.NoError(t, err)
	for _, path := range append(corpus, changed...) {
		name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		for source, folder := range map[string]string{manifest.SourceFile: "golden", manifest.SourceHTTP: "golden-http"} {
			last, of := line{}, source
			if output, err := os.ReadFile(filepath.Join("testdata", folder, name+".json")); err == nil {
				last.golden = readGolden(t, output)
			} else if _, own := lines[name+" "+source+" 1.36"]; !own {
				of = manifest.SourceFile
			}
			for _, release := range releases {
				if unasked[name] && release != "1.36" {
					continue
				}
				if l, ok := lines[name+" "+of+" "+release]; ok {
					if last = l; of != source {
						last.golden = last.withoutToleration(t)
					}
				}
				all = append(all, recorded{name, source, release, path, data, last.golden, last.Crashed != ""})
			}
		}
	}
	return all
}

// withoutToleration is the outcome without the toleration that only pods of files have.
func (g golden) withoutToleration(t testing.TB) golden {
	pods := g.Pods
	g.Pods = nil
	for _, data := range pods {
		var pod map[string]any
		require.NoError(t, json.Unmarshal(data, &pod))
		delete(pod["spec"].(map[string]any), "tolerations")
		data, err := json.Marshal(pod)
		require.NoError(t, err)
		g.Pods = append(g.Pods, data)
	}
	return g
}

// differsFromRelease are the outcomes in which we differ from the kubelet of the release, with
// LikeKubelet.
var differsFromRelease = map[string]string{
	"r38-hugepages-size-huge file 1.36": crashes,
	"r38-hugepages-size-huge file 1.37": crashes,
	"r38-hugepages-size-huge http 1.36": crashes,
	"r38-hugepages-size-huge http 1.37": crashes,
}

const crashes = "the kubelet divides by zero and crashes, again after each restart; here the pod is refused, as by 1.38"

// TestReleases: with LikeKubelet and a release, an outcome is that of the release's kubelet.
func TestReleases(t *testing.T) {
	equal, ofBuild, declared := map[string]int{}, map[string]int{}, map[string]int{}
	for _, r := range recordings(t) {
		decoder := likeKubelet(manifest.Decoder{Node: "node-1", Source: r.source, Release: releaseOf(t, r.release)})
		difference := r.differs(t, decoder)
		if difference != "" && !r.crashed {
			if difference = r.want.ofBuild(t).differs(t, decoder, r.path, r.data); difference == "" {
				ofBuild[r.release]++
				continue
			}
		}
		reason := differsFromRelease[r.String()]
		switch {
		case difference == "" && reason == "":
			equal[r.release]++
		case difference == "":
			t.Errorf("%s: no longer differs: %s", r, reason)
		case reason == "":
			t.Errorf("%s: %s", r, difference)
		default:
			declared[r.release]++
		}
	}
	t.Logf("equal %v; but for fields that the build does not have %v; declared %v", equal, ofBuild, declared)
}

func (r recorded) differs(t *testing.T, decoder manifest.Decoder) string {
	if r.crashed {
		_, rejected := decoder.Decode(r.path, r.data)
		require.Len(t, rejected, 1, r)
		return "the kubelet crashes"
	}
	return r.want.differs(t, decoder, r.path, r.data)
}

// TestMildest: without a release, a pod that the kubelet of any release accepts is accepted, as the
// first of them has it. Any other is refused for the reason of the first.
func TestMildest(t *testing.T) {
	first := map[string]recorded{}
	for _, r := range recordings(t) { // of one manifest and source in the order of releases
		key := r.name + " " + r.source
		if was, ok := first[key]; !ok || was.want.Pods == nil && r.want.Pods != nil {
			first[key] = r
		}
	}
	for _, r := range first {
		if !r.crashed {
			decoder := likeKubelet(manifest.Decoder{Node: "node-1", Source: r.source})
			assert.Empty(t, r.want.ofBuild(t).differs(t, decoder, r.path, r.data), r)
		}
	}
}

func TestParseRelease(t *testing.T) {
	for version, want := range map[string]string{
		"1.36": "1.36", "v1.37.2": "1.37", "1.38.0-beta.0": "1.38", "v1.36.3-gke.100+abc": "1.36", "1.37-x": "1.37",
		"": "", "1": "", "1.3": "", "1.35": "", "1.360": "", "1.39.0": "", "vv1.36": "",
	} {
		release, err := manifest.ParseRelease(version)
		require.Equal(t, want, release.String(), version)
		if want == "" {
			require.ErrorContains(t, err, "1.36, 1.37, 1.38", version)
		} else {
			require.NoError(t, err)
		}
	}
}
