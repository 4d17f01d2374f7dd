package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
)

// starter starts one kind of follower.
type starter func(*world, testing.TB, *rest.Config, string, []listwatch.Option, ...reflector.Option) follower

// forms are the ways in which objects come: as what, and in which encoding.
var forms = []struct {
	name  string
	start starter
	read  []listwatch.Option
}{
	{"typed, protobuf", (*world).followPods, nil},
	{"typed, JSON", (*world).followPods, []listwatch.Option{listwatch.WithJSON()}},
	{"metadata, protobuf", (*world).followMetadata, nil},
	{"metadata, JSON", (*world).followMetadata, []listwatch.Option{listwatch.WithJSON()}},
	{"custom resource, JSON", (*world).followWidgets, nil},
}

// ways are those of getting the state before the changes.
var ways = []struct {
	name    string
	read    []listwatch.Option
	options []reflector.Option
	kind    requestKind
	pages   bool
}{
	{name: "watch list", kind: watchList},
	{name: "list", read: []listwatch.Option{listwatch.WithoutWatchList()}, kind: list},
	{name: "pages of 500", options: []reflector.Option{reflector.WithPageSize(500)}, kind: list, pages: true},
}

// A1: after the first sync a store holds exactly what the server has, at the version that the
// server names.
func TestFirstSync(t *testing.T) {
	onServers(t, firstSync)
}

func firstSync(t *testing.T, on server) {
	t.Parallel() // the two servers beside each other
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(on.pods())
	w.defineWidgets()
	w.fillWidgets(on.pods())

	rows := table("form", "nodes", "way", "objects", "requests", "KB", "synced in")
	for _, form := range forms {
		for _, node := range []string{nodeName(7), ""} {
			for _, way := range ways {
				name := fmt.Sprintf("%s/%s/%s", form.name, orAll(node), way.name)
				t.Run(name, func(t *testing.T) {
					before := w.version(form.name)
					began := time.Now()
					f := form.start(w, t, c.Server.Config(cluster.Agent), node, append(way.read, form.read...), way.options...)
					requireSynced(t, f, 30*time.Second)
					took := time.Since(began)
					version := f.status().ResourceVersion
					after := w.version(form.name)

					requireWhole(t, f, 5*time.Second)
					expected := on.pods()
					if node != "" {
						expected /= nodes
					}
					require.Equal(t, expected, f.account().held)
					require.False(t, older(version, before) || older(after, version),
						"version %s is not what the server named before (%s) or after (%s)", version, before, after)
					requests := f.sent().log()
					require.Equal(t, 1, count(requests, way.kind), "%+v", requests)
					asked := askedPages(requests)
					if way.pages {
						require.Equal(t, max(1, expected/500), asked)
					}
					rows.add(form.name, orAll(node), way.name, expected, asked, f.sent().bytes()/1000, took.Round(time.Millisecond))
					require.NoError(t, f.stop())
				})
			}
		}
	}
	t.Logf("A1\n%s", rows)
}

// askedPages is the number of requests that brought the state.
func askedPages(log []request) (n int) {
	for _, r := range log {
		if r.kind != watches {
			n++
		}
	}
	return n
}

// version is what the server calls the version of a collection now, by a consistent list of one
// object.
func (w *world) version(form string) string {
	w.t.Helper()
	if form == "custom resource, JSON" {
		now, err := w.dynamics.Resource(widgetResource).List(w.t.Context(), metav1.ListOptions{Limit: 1})
		require.NoError(w.t, err)
		return now.GetResourceVersion()
	}
	now, err := w.client.CoreV1().Pods("").List(w.t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(w.t, err)
	return now.ResourceVersion
}
