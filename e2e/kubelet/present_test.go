package kubelet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
	"github.com/tributary-go/tributary/store"
)

// leftovers are names that our default mode passes over on purpose; the kubelet does not.
var leftovers = []string{"web.yaml.bak", "web.yaml~"}

// names are the files of a random folder. The kubelet passes over the last one.
var names = append([]string{
	"a.yaml", "b.yaml", "c.json", "web.yaml", "web-old.yaml", "web (copy).yaml", "README.md", "kustomization.yaml", "static", ".d.yaml",
}, leftovers...)

// neighbours is the kubelet's own file source and ours, in default mode, on one folder.
type neighbours struct {
	t         *testing.T
	kubelet   *kubelet
	random    *rand.Rand
	generated *generator
	path      string
	marks     int
	changed   time.Time // each file is older than that, so that none looks half-written
	log       []string

	ours *sources.Sources
	stop func()

	restarted        bool // the kubelet, since it was last asked
	compared, unlike int  // pods
}

// TestDefaultModeLacksNoPodOfTheKubelets: random operations on a folder, and restarts. After each,
// every pod that the kubelet runs runs in ours, as a manifest declares it now.
func TestDefaultModeLacksNoPodOfTheKubelets(t *testing.T) {
	seed, runs := settings(t, 2000)
	n := &neighbours{
		t: t, kubelet: startKubelet(t), random: rand.New(rand.NewPCG(seed, 1)), generated: newGenerator(t, seed),
		path: filepath.Join(t.TempDir(), "manifests"), changed: time.Now().Add(-24 * 365 * time.Hour),
	}
	require.NoError(t, os.Mkdir(n.path, 0o700))
	n.start()
	defer func() { n.stop() }()
	for i := range runs {
		n.change()
		if lacking := n.lacking(); lacking != "" {
			require.Fail(t, lacking, "state %d of seed %d, after\n%s", i, seed, strings.Join(n.log[max(0, len(n.log)-12):], "\n"))
		}
	}
	t.Logf("%d states, in which %d pods of the kubelet's were compared; ours was another declaration of %d", runs, n.compared, n.unlike)
	require.Greater(t, n.compared, runs, "the folders are too empty to tell")
}

// start starts our source, which knows nothing of what was.
func (n *neighbours) start() {
	n.ours = sources.New("node-1", sources.WithLogger(logr.Discard()), sources.File(n.path, static.WithInterval(time.Millisecond)))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.ours.Run(ctx) }()
	go func() {
		for range n.ours.Updates() {
		}
	}()
	n.stop = func() {
		cancel()
		require.NoError(n.t, <-ended)
	}
}

// put replaces a file by a rename.
func (n *neighbours) put(folder, name string, data []byte) {
	n.changed = n.changed.Add(time.Second)
	temporary := filepath.Join(folder, ".new")
	require.NoError(n.t, os.WriteFile(temporary, data, 0o600))
	require.NoError(n.t, os.Chtimes(temporary, n.changed, n.changed))
	require.NoError(n.t, os.Rename(temporary, filepath.Join(folder, name)))
}

// change does one thing to the folder, or restarts our source, and maybe the kubelet's.
func (n *neighbours) change() {
	name, other := names[n.random.IntN(len(names))], names[n.random.IntN(len(names))]
	if there := n.files(); len(there) > 0 && n.random.IntN(3) > 0 {
		name = there[n.random.IntN(len(there))] // most changes are of a file that is there
	}
	path := filepath.Join(n.path, name)
	data, err := os.ReadFile(path)
	op := n.random.IntN(12)
	n.log = append(n.log, fmt.Sprintf("%d %s (%s)", op, name, other))
	switch {
	case op == 0:
		n.stop()
		n.start()
		n.restarted = n.random.IntN(2) == 0
	case op == 1:
		n.renew()
	case err != nil || op < 6:
		n.put(n.path, name, n.content(data))
	case op == 6:
		require.NoError(n.t, os.Remove(path))
	case name == other:
	case op == 7: // another file takes over
		n.put(n.path, other, data)
		require.NoError(n.t, os.Remove(path))
	case op == 8:
		require.NoError(n.t, os.Rename(path, filepath.Join(n.path, other)))
	case op == 9: // a newer image elsewhere, and then the old file is spoilt
		n.put(n.path, other, n.edited(data))
		n.put(n.path, name, n.spoilt(data))
	case op == 10:
		n.put(n.path, name, n.spoilt(data))
		n.put(n.path, other, n.edited(data))
	default:
		n.put(n.path, other, n.edited(data))
	}
}

// renew puts another folder in the place of this one, with some of its files.
func (n *neighbours) renew() {
	next := n.path + ".next"
	require.NoError(n.t, os.Mkdir(next, 0o700))
	for _, name := range n.files() {
		if n.random.IntN(3) == 0 {
			continue
		}
		data, err := os.ReadFile(filepath.Join(n.path, name))
		require.NoError(n.t, err)
		n.put(next, name, data)
	}
	require.NoError(n.t, os.Rename(n.path, n.path+".last"))
	require.NoError(n.t, os.Rename(next, n.path))
	require.NoError(n.t, os.RemoveAll(n.path+".last"))
}

// files are the names of the files in the folder, without the mark.
func (n *neighbours) files() (all []string) {
	entries, err := os.ReadDir(n.path)
	require.NoError(n.t, err)
	for _, entry := range entries {
		if entry.Name() != markFile {
			all = append(all, entry.Name())
		}
	}
	return all
}

// content is a new content: a pod of a few names, or a list of them, or anything else.
func (n *neighbours) content(before []byte) []byte {
	pod := func() string {
		name, image := string("pqr"[n.random.IntN(3)]), fmt.Sprint("v", n.random.IntN(4))
		uid := []string{"", "", "", ", uid: 'node-1:x'"}[n.random.IntN(4)]
		more := []string{"", "", "", "  hostNetwrok: true\n"}[n.random.IntN(4)]
		return fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: %s%s}\nspec:\n  containers: [{name: c, image: %s}]\n%s", name, uid, image, more)
	}
	switch n.random.IntN(10) {
	case 0:
		return n.generated.manifest()
	case 1:
		return []byte(pod() + "---\n" + pod())
	case 2:
		return []byte("---\n# nothing\n---\n" + pod())
	case 3:
		return []byte([]string{"", "# Manifests\n\nPut them: here\n", "resources: [a.yaml]\n", "{", "kind: Deployment\napiVersion: apps/v1\n"}[n.random.IntN(5)])
	case 4, 5:
		return n.spoilt(before)
	}
	return []byte(pod())
}

// edited is a manifest with another image.
func (n *neighbours) edited(data []byte) []byte {
	return []byte(strings.Replace(string(data), "image: v", fmt.Sprintf("image: v%d", n.random.IntN(4)), 1))
}

// spoilt is a manifest that was truncated, commented out or mistyped.
func (n *neighbours) spoilt(data []byte) []byte {
	text := string(data)
	switch n.random.IntN(5) {
	case 0:
		return nil
	case 1:
		return data[:n.random.IntN(len(data)+1)]
	case 2:
		return []byte("# " + strings.ReplaceAll(text, "\n", "\n# ") + "\n")
	case 3:
		return []byte(strings.Replace(text, "image:", "imgae:", 1))
	}
	return []byte(strings.Replace(text, "kind: Pod", "kind: Pdo", 1))
}

const markFile = "0-mark.yaml"

// lacking is a pod that the kubelet runs and ours does not, or empty.
func (n *neighbours) lacking() string {
	n.marks++
	mark := podFile(markFile, "mark", fmt.Sprint("mark-", n.marks), "")
	n.put(n.path, mark.Path, []byte(mark.Data))
	image := fmt.Sprint("mark-", n.marks)
	var theirs struct {
		Pods []*corev1.Pod `json:"pods"`
	}
	n.kubelet.answer(n.t, map[string]any{"present": map[string]any{"path": n.path, "mark": image, "restarted": n.restarted}}, &theirs)
	n.restarted = false
	ours := n.running(image)
	declared, unreadable := n.declared()
	for _, pod := range theirs.Pods {
		key := store.KeyOf(pod)
		switch now, runs := ours[key]; {
		case len(declared[key]) == 0 && unreadable[key]:
		case len(declared[key]) == 0:
			return key + " runs in the kubelet, and our decoder finds no declaration of it"
		case !runs:
			return fmt.Sprintf("%s runs in the kubelet and not in ours: %+v", key, n.ours.Status()[0])
		case !declared[key][content(n.t, now)]:
			return fmt.Sprintf("%s runs in ours as no manifest declares it: %+v", key, n.ours.Status()[0])
		default:
			n.compared++
			if content(n.t, pod) != content(n.t, now) {
				n.unlike++ // two good manifests declare it
			}
		}
	}
	return ""
}

// running are the pods of our newest state, once it has the mark.
func (n *neighbours) running(mark string) map[string]*corev1.Pod {
	var pods map[string]*corev1.Pod
	read := func() bool {
		pods = map[string]*corev1.Pod{}
		marked := false
		for _, p := range n.ours.Merged() {
			pods[store.KeyOf(p.Pod)] = p.Pod
			marked = marked || p.Pod.Spec.Containers[0].Image == mark
		}
		return marked
	}
	for deadline := time.Now().Add(20 * time.Second); !read(); <-time.After(200 * time.Microsecond) {
		require.True(n.t, time.Now().Before(deadline), "the mark is not read: %+v", n.ours.Status())
	}
	return pods
}

// declared has, by key, the contents that manifests declare well now. unreadable are the keys that
// only leftovers declare, or manifests that are refused although the kubelet takes them:
// docs/kubelet.md names these.
func (n *neighbours) declared() (declared map[string]map[string]bool, unreadable map[string]bool) {
	declared, unreadable = map[string]map[string]bool{}, map[string]bool{}
	for _, name := range append(n.files(), markFile) {
		if strings.HasPrefix(name, ".") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(n.path, name))
		require.NoError(n.t, err)
		decoder := manifest.Decoder{Node: "node-1", Source: manifest.SourceFile}
		pods, rejected := decoder.Decode(name, data)
		refused := func(err *manifest.Error) bool {
			return slices.Contains(err.Fields(), "metadata.uid") || strings.Contains(err.Error(), "two keys are one in JSON")
		}
		if slices.Contains(leftovers, name) || slices.ContainsFunc(rejected, refused) {
			decoder.LikeKubelet = true
			pods, _ = decoder.Decode(name, data)
			for _, pod := range pods {
				unreadable[store.KeyOf(pod)] = true
			}
			continue
		}
		for _, pod := range pods {
			key := store.KeyOf(pod)
			if declared[key] == nil {
				declared[key] = map[string]bool{}
			}
			declared[key][content(n.t, pod)] = true
		}
	}
	return declared, unreadable
}

// content is a pod without what is made of its path.
func content(t *testing.T, pod *corev1.Pod) string {
	data, err := json.Marshal(pod)
	require.NoError(t, err)
	return comparable(t, data)
}
