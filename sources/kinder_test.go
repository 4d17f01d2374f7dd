package sources_test

import (
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// act is one thing that happens, what the kubelet makes of it at once and when its period is over,
// and what we do.
type act struct {
	do             func(*kubelet)
	kubelet, later []string
	ours           []string
	problem        string // what Status says by default
}

// TestKinderToFiles plays each story twice: first for a source that works like the kubelet's, and
// then for ours.
func TestKinderToFiles(t *testing.T) {
	t.Parallel() // it waits
	if runtime.GOOS != "linux" {
		t.Skip("the sequences were observed with inotify")
	}
	put := func(name, content string) func(*kubelet) { return func(k *kubelet) { k.put(name, content) } }
	remove := func(name string) func(*kubelet) { return func(k *kubelet) { k.remove(name) } }
	swap := func(image string) func(*kubelet) {
		return func(k *kubelet) {
			require.NoError(k.t, os.Mkdir(k.path(".."+image), 0o700))
			k.put(".."+image+"/a.yaml", manifestOf("p", image))
			require.NoError(k.t, os.Symlink(".."+image, k.path("..data_tmp")))
			require.NoError(k.t, os.Rename(k.path("..data_tmp"), k.path("..data")))
		}
	}
	lines := func(lines ...string) []string { return lines }
	added, removed, second, third := lines("ADD file p-node-1=v1"), lines("REMOVE file p-node-1=v1"), manifestOf("b", "v1"), manifestOf("q", "v1")
	edited := lines("REMOVE file p-node-1=v1", "ADD file p-node-1=v2")
	for _, row := range []struct {
		name          string
		path          string // in the folder; empty: the folder
		before        []func(*kubelet)
		kubelet, ours []string // the first state
		acts          []act
	}{
		{"a good file turns broken", "", []func(*kubelet){put("a.yaml", podV1)}, added, added, []act{
			{put("a.yaml", noPod), nil, removed, nil, "a.yaml"},
		}},
		{"the only file is broken, and another one comes", "", []func(*kubelet){put("a.yaml", podV1)}, added, added, []act{
			{put("a.yaml", noPod), nil, removed, nil, "a.yaml"},
			{put("b.yaml", second), lines("ADD file b-node-1=v1 p-node-1=v1"), removed, lines("ADD file b-node-1=v1"), "a.yaml"},
		}},
		{"two files, one name", "", []func(*kubelet){put("a.yaml", podV1), put("b.yaml", podV2)}, lines("ADD file p-node-1=v2"), added, []act{
			{remove("a.yaml"), lines("REMOVE file p-node-1=v2"), lines("ADD file p-node-1=v2"), edited, ""},
		}},
		{"a copy", "", []func(*kubelet){put("a.yaml", podV1)}, added, added, []act{
			{put("a-old.yaml", podV1), append(removed, added...), append(removed, added...), nil, ""},
			{put("b.yaml", podV1), append(removed, added...), nil, nil, ""},
			{put("a.yaml", podV2), edited, lines("REMOVE file p-node-1=v2", "ADD file p-node-1=v1"), edited, ""},
		}},
		{"the file is renamed", "", []func(*kubelet){put("a.yaml", podV1)}, added, added, []act{
			{func(k *kubelet) { require.NoError(k.t, os.Rename(k.path("a.yaml"), k.path("b.yaml"))) },
				append(removed, added...), nil, nil, ""},
		}},
		{"the file names another pod", "", []func(*kubelet){put("a.yaml", podV1)}, added, added, []act{
			{put("a.yaml", third), lines("ADD file q-node-1=v1"), removed, lines("REMOVE file p-node-1=v1", "ADD file q-node-1=v1"), ""},
		}},
		{"a backup", "", []func(*kubelet){put("a.yaml", podV1), put("a.yaml.bak", podV1)}, added, added, []act{
			{put("a.yaml", podV2), edited, lines("REMOVE file p-node-1=v2", "ADD file p-node-1=v1"), edited, ""},
		}},
		{"a single file is replaced", "a.yaml", []func(*kubelet){put("a.yaml", podV1)}, added, added, []act{
			{put("a.yaml", podV2), append(edited, "REMOVE file p-node-1=v2"), lines("ADD file p-node-1=v2"), edited, ""},
		}},
		{"a ConfigMap is switched", "", []func(*kubelet){swap("v1"), func(k *kubelet) {
			require.NoError(k.t, os.Symlink("..data/a.yaml", k.path("a.yaml")))
		}}, added, added, []act{{swap("v2"), nil, edited, edited, ""}}},
		{"two documents", "", []func(*kubelet){put("a.yaml", podV1+"---\n"+third)}, added, lines("ADD file p-node-1=v1 q-node-1=v1"), nil},
		{"a PodList", "", []func(*kubelet){put("a.json", podList(item("p", "v1")))}, lines("ADD file"), added, nil},
		{"the folder goes away", "sub", []func(*kubelet){
			func(k *kubelet) { require.NoError(k.t, os.Mkdir(k.path("sub"), 0o700)) }, put("sub/a.yaml", podV1),
		}, added, added, []act{
			{func(k *kubelet) { require.NoError(k.t, os.Rename(k.path("sub"), k.path("away"))) }, nil, removed, nil, "has gone away: what it declared stays"},
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			begin := func(k *kubelet, run ...sources.Option) *kubelet {
				k.rig = &rig{t: t}
				for _, do := range row.before {
					do(k)
				}
				k.rig = start(t, run...)
				return k
			}
			k := &kubelet{folder: folder(t), ticks: make(chan time.Time)}
			begin(k, sources.LikeKubelet(), sources.File(k.path(row.path), static.WithInterval(time.Hour), sources.Ticks(k.ticks)))
			k.expect(row.kubelet...)
			k.watched()
			for _, act := range row.acts {
				act.do(k)
				k.expect(act.kubelet...)
				if act.problem != "" && row.path == "" {
					k.problem(act.problem) // it has been looked at
				}
				k.period()
				k.expect(act.later...)
			}

			us := &kubelet{folder: folder(t)}
			begin(us, sources.File(us.path(row.path), static.WithInterval(time.Hour)))
			us.expect(row.ours...)
			for _, act := range row.acts {
				act.do(us)
				us.expect(act.ours...)
				if act.problem != "" {
					us.problem(act.problem)
				}
			}
			nothing(us.rig)
		})
	}
}

// TestKinderToURLs does the same for what a server answers, after a list of a and b.
func TestKinderToURLs(t *testing.T) {
	ab, a, b := podList(item("a", "v1"), item("b", "v1")), manifestOf("a", "v1"), manifestOf("b", "v1")
	elsewhere := serve(t, body(podList(item("elsewhere", "v1"))))
	away := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }
	lines := func(lines ...string) []string { return lines }
	type answer struct {
		answer        http.HandlerFunc
		kubelet, ours []string
		problem       string // what Status says by default
	}
	for _, row := range []struct {
		name    string
		answers []answer
	}{
		{"an empty answer, and the one before it again", []answer{
			{body(""), lines("REMOVE http a-node-1=v1 b-node-1=v1"), nil, "the body is empty"},
			{body(ab), nil, nil, ""}, // the kubelet has seen it, and is deaf
			{body(podList(item("a", "v1"))), lines("ADD http a-node-1=v1"), lines("REMOVE http b-node-1=v1"), ""},
		}},
		{"one bad item", []answer{
			{body(podList(item("a", ""), item("c", "v1"))), nil, lines("REMOVE http b-node-1=v1", "ADD http c-node-1=v1"), "item 1"},
			{body(podList(item("c", "v1"))), lines("REMOVE http a-node-1=v1 b-node-1=v1", "ADD http c-node-1=v1"),
				lines("REMOVE http a-node-1=v1"), ""},
		}},
		{"two documents", []answer{{body(a + "---\n" + b), lines("REMOVE http b-node-1=v1"), nil, ""}}},
		{"a redirect to another server", []answer{
			{away, lines("REMOVE http a-node-1=v1 b-node-1=v1", "ADD http elsewhere-node-1=v1"), nil, "is another server"},
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			ticks := make(chan time.Time)
			server := serve(t, body(ab))
			r := start(t, sources.LikeKubelet(), pollingSource(t, server.URL, sources.Ticks(ticks)))
			r.expect("ADD http a-node-1=v1 b-node-1=v1")
			for _, next := range row.answers {
				server.now(next.answer)
				ticks <- time.Now()
				ticks <- time.Now() // the answer has been dealt with
				r.expect(next.kubelet...)
			}
			nothing(r)

			server.now(body(ab))
			r = polling(t, server.URL)
			r.expect("ADD http a-node-1=v1 b-node-1=v1")
			for _, next := range row.answers {
				server.now(next.answer)
				server.askedAgain(t)
				r.expect(next.ours...)
				if next.problem == "" {
					r.healthy()
				} else {
					r.problem(next.problem)
				}
			}
			nothing(r)
		})
	}
}

// nothing wants no update to be on its way, as far as a moment can show that.
func nothing(r *rig) {
	r.t.Helper()
	select {
	case u := <-r.Updates():
		require.FailNow(r.t, describe(u))
	case <-time.After(20 * time.Millisecond):
	}
}
