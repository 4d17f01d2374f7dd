package sources_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
)

// kubelet is a source that works like the kubelet's, in a folder, with a period that the test ends.
type kubelet struct {
	*rig
	folder string
	ticks  chan time.Time
}

// likeKubelet starts a file source on a path in a new folder of these files.
func likeKubelet(t *testing.T, name string, files ...string) *kubelet {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the sequences were observed with inotify")
	}
	k := &kubelet{folder: folder(t), ticks: make(chan time.Time)}
	for i := 0; i < len(files); i += 2 {
		put(t, k.path(files[i]), files[i+1])
	}
	k.rig = start(t, sources.LikeKubelet(),
		sources.File(k.path(name), sources.Every(time.Hour), sources.Ticks(k.ticks)))
	return k
}

func (k *kubelet) path(name string) string { return filepath.Join(k.folder, name) }

func (k *kubelet) put(name, content string) {
	k.t.Helper()
	put(k.t, k.path(name), content)
}

func (k *kubelet) remove(name string) {
	k.t.Helper()
	require.NoError(k.t, os.Remove(k.path(name)))
}

// period lets the period be over, and the look after it too: the source can only take a second tick when it is done.
func (k *kubelet) period() {
	k.t.Helper()
	select {
	case k.ticks <- time.Now():
	case <-time.After(patience):
		require.FailNow(k.t, "the source hangs")
	}
}

// watched waits for the watch, which begins while the files are being read for the first time.
func (k *kubelet) watched() {
	k.t.Helper()
	require.Eventually(k.t, func() bool { return strings.HasPrefix(k.Status()[0].Mode, "inotify") }, patience, time.Millisecond)
}

// nothing wants no update to be on its way: a new pod is the next thing that is told.
func (k *kubelet) nothing() {
	k.t.Helper()
	k.put("zz.yaml", manifestOf("zz", "v1"))
	k.expect("ADD file zz-node-1=v1")
	k.remove("zz.yaml")
	k.expect("REMOVE file zz-node-1=v1")
}

// TestKubeletFiles runs the sequences that were observed with the kubelet 1.36.3.
func TestKubeletFiles(t *testing.T) {
	p, p2 := manifestOf("p", "v1"), manifestOf("p", "v2")
	const broken = "kind: Pod\n"
	for name, sequence := range map[string]func(t *testing.T){
		"empty folder": func(t *testing.T) { likeKubelet(t, "").expect("ADD file") },
		"only broken files": func(t *testing.T) {
			likeKubelet(t, "", "a.yaml", broken).expect("ADD file")
		},
		"not there, made later": func(t *testing.T) {
			k := likeKubelet(t, "sub")
			k.expect("ADD file")
			require.NoError(t, os.Mkdir(k.path("sub"), 0o700))
			k.put("sub/a.yaml", p)
			k.watched() // it is looked for each second, but not read
			k.put("sub/b.yaml", manifestOf("b", "v1"))
			k.expect("ADD file b-node-1=v1")
			k.period()
			k.expect("ADD file p-node-1=v1")
		},
		"pods at the start": func(t *testing.T) {
			likeKubelet(t, "", "a.yaml", p, "b.yaml", manifestOf("q", "v1")).expect("ADD file p-node-1=v1 q-node-1=v1")
		},
		"add, edit, delete": func(t *testing.T) {
			k := likeKubelet(t, "")
			k.expect("ADD file")
			k.watched()
			k.put("a.yaml", p)
			k.expect("ADD file p-node-1=v1")
			k.put("a.yaml", p2)
			k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
			k.remove("a.yaml")
			k.expect("REMOVE file p-node-1=v2")
			k.nothing()
		},
		"each file that is moved in is one ADD": func(t *testing.T) {
			k := likeKubelet(t, "")
			k.expect("ADD file")
			k.watched()
			for i := range 6 {
				k.put(fmt.Sprint(i, ".yaml"), manifestOf(fmt.Sprint("p", i), "v1"))
			}
			for i := range 6 {
				k.expect(fmt.Sprintf("ADD file p%d-node-1=v1", i))
			}
		},
		"a uid of its own": func(t *testing.T) {
			k := likeKubelet(t, "", "a.yaml", manifestOf("p", "v1", fixed))
			k.expect("ADD file p-node-1=v1")
			k.watched()
			k.put("a.yaml", manifestOf("p", "v2", fixed))
			k.expect("UPDATE file p-node-1=v2")
			k.put("a.yaml", manifestOf("p", "v2", fixed)+"status: {message: warming up}\n")
			k.expect("RECONCILE file p-node-1=v2")
			k.put("a.yaml", manifestOf("p", "v2", fixed, "  deletionTimestamp: 2030-01-01T00:00:00Z\n"))
			k.expect("DELETE file p-node-1=v2")
			k.remove("a.yaml")
			k.expect("REMOVE file p-node-1=v2")
		},
		"no edit": func(t *testing.T) {
			k := likeKubelet(t, "", "a.yaml", p)
			k.expect("ADD file p-node-1=v1")
			k.watched()
			k.put("a.yaml", "# comment\n"+p)
			k.put("a.yaml", p+"  restartPolicy: Always\n")
			require.NoError(t, os.Chmod(k.path("a.yaml"), 0o640))
			age(t, k.path("a.yaml"))
			k.put(".hidden.yaml", manifestOf("hidden", "v1"))
			k.nothing()
		},
		"renamed": func(t *testing.T) {
			k := likeKubelet(t, "", "a.yaml", p)
			k.expect("ADD file p-node-1=v1")
			k.watched()
			require.NoError(t, os.Rename(k.path("a.yaml"), k.path(".a.yaml")))
			gone := k.update()
			require.NoError(t, os.Rename(k.path(".a.yaml"), k.path("a.yaml")))
			back := k.update()
			require.Equal(t, []string{"REMOVE file p-node-1=v1", "ADD file p-node-1=v1"}, []string{describe(gone), describe(back)})
			require.Equal(t, gone.Pods[0].UID, back.Pods[0].UID)
		},
		"broken: gone at the next period": func(t *testing.T) {
			k := likeKubelet(t, "", "a.yaml", p, "b.yaml", manifestOf("b", "v1"))
			k.expect("ADD file b-node-1=v1 p-node-1=v1")
			k.watched()
			k.put("a.yaml", broken)
			k.problem("a.yaml")
			k.nothing()
			k.period()
			k.expect("REMOVE file p-node-1=v1")
			k.put("a.yaml", p)
			k.expect("ADD file p-node-1=v1")
		},
		"the only file is broken: it comes back with any other": func(t *testing.T) {
			k := likeKubelet(t, "", "a.yaml", p)
			k.expect("ADD file p-node-1=v1")
			k.watched()
			k.put("a.yaml", broken)
			k.problem("a.yaml")
			k.period()
			k.expect("REMOVE file p-node-1=v1")
			k.put("b.yaml", manifestOf("b", "v1"))
			k.expect("ADD file b-node-1=v1 p-node-1=v1")
			k.period()
			k.expect("REMOVE file p-node-1=v1")
		},
		"two files, one name": func(t *testing.T) {
			k := likeKubelet(t, "", "a.yaml", p, "b.yaml", p2)
			k.expect("ADD file p-node-1=v2")
			k.watched()
			age(t, k.path("a.yaml")) // touch
			k.expect("REMOVE file p-node-1=v2", "ADD file p-node-1=v1")
			k.period()
			k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
			k.remove("a.yaml")
			k.expect("REMOVE file p-node-1=v2")
			k.nothing()
			k.period()
			k.expect("ADD file p-node-1=v2")
		},
		"a backup undoes an edit": func(t *testing.T) {
			k := likeKubelet(t, "", "a.yaml", p, "a.yaml.bak", p)
			k.expect("ADD file p-node-1=v1")
			k.watched()
			k.put("a.yaml", p2)
			k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
			k.period()
			k.expect("REMOVE file p-node-1=v2", "ADD file p-node-1=v1")
		},
		"two files, one uid": func(t *testing.T) {
			k := likeKubelet(t, "", "a.yaml", manifestOf("a", "v1", fixed), "b.yaml", manifestOf("b", "v1", fixed))
			k.expect("ADD file a-node-1=v1 b-node-1=v1")
			k.watched()
			k.remove("b.yaml")
			k.nothing()
			k.period()
			k.nothing()
		},
		"the file names another pod": func(t *testing.T) {
			k := likeKubelet(t, "", "a.yaml", p)
			k.expect("ADD file p-node-1=v1")
			k.watched()
			k.put("a.yaml", manifestOf("q", "v1"))
			k.expect("ADD file q-node-1=v1")
			k.period()
			k.expect("REMOVE file p-node-1=v1")
			k.put("a.yaml", manifestOf("r", "v1"))
			k.expect("ADD file r-node-1=v1")
			k.remove("a.yaml")
			k.expect("REMOVE file r-node-1=v1")
			k.nothing()
			k.period()
			k.expect("REMOVE file q-node-1=v1")
		},
		"subfolder": func(t *testing.T) {
			k := likeKubelet(t, "", "a.yaml", p)
			k.expect("ADD file p-node-1=v1")
			require.NoError(t, os.Mkdir(k.path("more"), 0o700))
			k.period()
			k.problem("more is not a regular file")
		},
		"two documents: the first": func(t *testing.T) {
			likeKubelet(t, "", "a.yaml", p+"---\n"+manifestOf("q", "v1")).expect("ADD file p-node-1=v1")
		},
		"no pods: README, PodList, Deployment": func(t *testing.T) {
			likeKubelet(t, "", "README", "Hello.", "empty", "", "l.json", podList(item("p", "v1")),
				"d.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n").expect("ADD file")
		},
		"symlink to a file": func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "real.yaml")
			put(t, target, p)
			k := likeKubelet(t, "")
			k.expect("ADD file")
			k.watched()
			require.NoError(t, os.Symlink(target, k.path("a.yaml")))
			k.expect("ADD file p-node-1=v1")
			put(t, target, p2)
			k.nothing()
			k.period()
			k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
		},
		"folder removed and made again": func(t *testing.T) {
			k := likeKubelet(t, "sub")
			k.expect("ADD file")
			require.NoError(t, os.Mkdir(k.path("sub"), 0o700))
			k.watched()
			require.NoError(t, os.RemoveAll(k.path("sub")))
			require.NoError(t, os.Mkdir(k.path("sub"), 0o700))
			k.put("sub/a.yaml", p) // no event ever comes again
			k.period()
			k.expect("ADD file p-node-1=v1")
			k.put("sub/a.yaml", p2)
			k.period()
			k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
		},
		"single file, edited and removed": func(t *testing.T) {
			k := likeKubelet(t, "a.yaml", "a.yaml", p)
			k.expect("ADD file p-node-1=v1")
			k.watched()
			file, err := os.OpenFile(k.path("a.yaml"), os.O_WRONLY|os.O_APPEND, 0)
			require.NoError(t, err)
			_, err = io.WriteString(file, "    command: [sleep]\n")
			require.NoError(t, err)
			require.NoError(t, file.Close())
			k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v1")
			k.remove("a.yaml")
			k.expect("REMOVE file p-node-1=v1")
		},
		"single file, replaced": func(t *testing.T) {
			k := likeKubelet(t, "a.yaml", "a.yaml", p)
			k.expect("ADD file p-node-1=v1")
			k.watched()
			k.put("a.yaml", p2)
			k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2", "REMOVE file p-node-1=v2")
			k.period()
			k.expect("ADD file p-node-1=v2")
		},
		"single file, broken: it stays": func(t *testing.T) {
			k := likeKubelet(t, "a.yaml", "a.yaml", p)
			k.expect("ADD file p-node-1=v1")
			overwrite(t, k.path("a.yaml"), broken)
			k.period()
			k.problem("a.yaml")
			overwrite(t, k.path("a.yaml"), p2)
			k.period()
			k.expect("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
		},
		"single file, broken at the start: not ready": func(t *testing.T) {
			k := likeKubelet(t, "a.yaml", "a.yaml", broken)
			k.problem("a.yaml")
			k.period()
			overwrite(t, k.path("a.yaml"), p)
			k.period()
			k.expect("ADD file p-node-1=v1")
		},
		"10 MiB": func(t *testing.T) {
			k := likeKubelet(t, "", "a.yaml", p+strings.Repeat("#", manifest.MaxSize-len(p)),
				"b.yaml", manifestOf("q", "v1")+strings.Repeat("#", manifest.MaxSize-len(p)-1))
			k.expect("ADD file q-node-1=v1")
		},
	} {
		t.Run(name, sequence)
	}
}

// TestKubeletURL runs the sequences for a URL.
func TestKubeletURL(t *testing.T) {
	ab, bc := podList(item("a", "v1"), item("b", "v1")), podList(item("b", "v1"), item("c", "v1"))
	type one struct {
		answer http.HandlerFunc
		want   []string
	}
	type steps = []one
	step := func(answer http.HandlerFunc, want ...string) one { return one{answer, want} }
	for _, row := range []struct {
		name  string
		steps steps
	}{
		{"one pod", steps{step(body(manifestOf("p", "v1")), "ADD http p-node-1=v1")}},
		{"a list, in its order", steps{step(body(podList(item("b", "v1"), item("a", "v1"))), "ADD http b-node-1=v1 a-node-1=v1")}},
		{"a list changes", steps{
			step(body(ab), "ADD http a-node-1=v1 b-node-1=v1"), step(body(bc), "REMOVE http a-node-1=v1", "ADD http c-node-1=v1"),
			step(body(bc)), step(status(500)), step(body(bc)), step(status(404)), step(hijacked("")),
			step(body(podList()), "REMOVE http b-node-1=v1 c-node-1=v1"),
		}},
		{"none at first", steps{step(body(podList()), "ADD http")}},
		{"an empty body, and the same one after it for ever", steps{
			step(body(ab), "ADD http a-node-1=v1 b-node-1=v1"), step(body(""), "REMOVE http a-node-1=v1 b-node-1=v1"),
			step(body(ab)), step(body(ab)), step(body(ab+" "), "ADD http a-node-1=v1 b-node-1=v1"),
		}},
		{"an empty body at first", steps{step(body(""), "ADD http")}},
		{"errors at first", steps{step(status(500)), step(status(204)), step(body(strings.Repeat(" ", manifest.MaxSize))),
			step(body(ab), "ADD http a-node-1=v1 b-node-1=v1")}},
		{"one bad pod", steps{step(body(podList(item("a", "v1"), item("b", "")))), step(body(ab), "ADD http a-node-1=v1 b-node-1=v1")}},
		{"two of one name", steps{step(body(podList(item("a", "v1"), item("a", "v2"))), "ADD http a-node-1=v1")}},
		{"a List, a bare array", steps{
			step(body(strings.Replace(ab, "PodList", "List", 1))), step(body("[" + item("a", "v1") + "]")), step(body(ab), "ADD http a-node-1=v1 b-node-1=v1"),
		}},
		{"two documents", steps{step(body(manifestOf("p", "v1")+"---\n"+manifestOf("q", "v1")), "ADD http p-node-1=v1")}},
	} {
		t.Run(row.name, func(t *testing.T) {
			ticks := make(chan time.Time)
			server := serve(t, row.steps[0].answer)
			r := start(t, sources.LikeKubelet(), pollingSource(t, server.URL, sources.Ticks(ticks)))
			poll := func(answer http.HandlerFunc) {
				before := len(server.asked())
				server.now(answer)
				ticks <- time.Now()
				require.Eventually(t, func() bool { return len(server.asked()) > before }, patience, time.Millisecond)
			}
			for i, step := range row.steps {
				if i > 0 {
					poll(step.answer)
				}
				r.expect(step.want...)
			}
			// Nothing else is on its way.
			poll(body(manifestOf("end", "v1")))
			last := r.next()
			if strings.HasPrefix(last, "REMOVE") {
				last = r.next()
			}
			require.Equal(t, "ADD http end-node-1=v1", last)
		})
	}
}

func TestKubeletURLFollowsRedirects(t *testing.T) {
	other := serve(t, body(manifestOf("p", "v1")))
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	start(t, sources.LikeKubelet(), pollingSource(t, server.URL)).expect("ADD http p-node-1=v1")
}

// TestKubeletAPIServer runs the sequences for the API server.
func TestKubeletAPIServer(t *testing.T) {
	c := newCluster(t)
	c.create("b", onNode("node-1"))
	c.create("a", onNode("node-1"))
	r := start(t, sources.LikeKubelet(), sources.APIServer(c.client))
	first := r.update()
	require.Equal(t, "ADD api a=v1 b=v1", describe(first))
	c.change("a", label("x"))
	r.expect("UPDATE api a=v1")
	c.change("a", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/f"} })
	c.status("a", phase(corev1.PodRunning))
	u := r.update()
	require.Equal(t, "RECONCILE api a=v1", describe(u))
	require.Empty(t, u.Pods[0].Finalizers, "it stays as it was first seen")
	require.Equal(t, first.Pods[0].ResourceVersion, u.Pods[0].ResourceVersion)
	c.delete("a", 30)
	u = r.update()
	require.Equal(t, "DELETE api a=v1", describe(u))
	require.EqualValues(t, 30, *u.Pods[0].DeletionGracePeriodSeconds)
	c.status("a", phase(corev1.PodFailed))
	r.expect("RECONCILE api a=v1")
	c.delete("a", 0) // forced, but the finalizer holds it
	u = r.update()
	require.Equal(t, "DELETE api a=v1", describe(u))
	require.EqualValues(t, 0, *u.Pods[0].DeletionGracePeriodSeconds)
	c.change("a", func(p *corev1.Pod) { p.Finalizers = nil })
	r.expect("REMOVE api a=v1")
	c.remove("b")
	c.create("b", onNode("node-1"))
	r.expect("REMOVE api b=v1", "ADD api b=v1")
	c.create("mirror", onNode("node-1"), annotation(sources.SourceAnnotation, sources.FileSource))
	u = r.update()
	require.Equal(t, "ADD api mirror=v1", describe(u))
	require.Equal(t, sources.APISource, u.Pods[0].Annotations[sources.SourceAnnotation])
	empty := start(t, sources.LikeKubelet(), sources.APIServer(newCluster(t).client))
	empty.expect("ADD api")
}
