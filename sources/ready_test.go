package sources_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

func TestSyncedDoesNotWaitForOptionalSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		required, soon, never := newScripted("required"), newScripted("soon"), newScripted("never")
		r := start(t, sources.Custom(required), sources.Custom(soon).Optional(time.Minute), sources.Custom(never).Optional(0))
		required.set(t)
		r.expect("ADD required")
		time.Sleep(59 * time.Second)
		synctest.Wait()
		require.False(t, isClosed(r.Synced()))
		time.Sleep(time.Second)
		synctest.Wait()
		require.True(t, isClosed(r.Synced()))
		never.set(t)
		r.expect("ADD never")
		r.stop()
		<-r.done
	})
}

func TestSyncedWaitsForRequiredSources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newScripted("s")
		r := start(t, sources.Custom(source).Required(time.Minute))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, r.Status()[0].Problems)
		time.Sleep(time.Second)
		require.EqualError(t, r.Status()[0].Problems[0], "the s source is required, and has not been read within 1m0s")
		require.False(t, isClosed(r.Synced()))
		source.set(t)
		r.expect("ADD s")
		synctest.Wait()
		require.True(t, isClosed(r.Synced()))
		require.Empty(t, r.Status()[0].Problems)
		r.stop()
		<-r.done
	})
}

func TestSafeToPrune(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, other := newScripted("s"), newScripted("other")
		r := start(t, sources.Custom(source), sources.Custom(other))
		safe := func() bool {
			synctest.Wait()
			return r.SafeToPrune("s")
		}
		require.False(t, safe(), "nothing has been set")
		source.set(t, podOf("a", "v1"), podOf("b", "v1"))
		require.False(t, safe(), "nothing has been read")
		r.expect("ADD s a=v1 b=v1")
		require.True(t, safe())
		require.False(t, r.SafeToPrune("other"))
		require.False(t, r.SafeToPrune("unknown"))

		source.set(t, podOf("b", "v2"))
		require.False(t, safe(), "a state waits to be read")
		r.expect("REMOVE s a=v1")
		require.False(t, safe(), "half of it waits")
		r.expect("UPDATE s b=v2")
		require.True(t, safe())

		source.tell(sources.Report{Problems: []error{errors.New("away")}})
		require.False(t, safe(), "the source has a problem")
		source.tell(sources.Report{LastContact: time.Now(), StaleAfter: time.Minute})
		require.True(t, safe())
		time.Sleep(time.Minute + 1)
		require.False(t, safe(), "nothing has been heard of it for too long")
		source.tell(sources.Report{})
		require.True(t, safe())
		source.ends <- errors.New("broken")
		require.False(t, safe(), "it has ended")
		r.stop()
		<-r.done
	})
}

func TestSafeToPruneOfTheSourcesOfThisPackage(t *testing.T) {
	c := newCluster(t)
	path := filepath.Join(folder(t), "a.yaml")
	put(t, path, manifestOf("f", "v1"))
	server := serve(t, body(manifestOf("h", "v1")))
	r := start(t, sources.APIServer(c.client), sources.File(filepath.Dir(path), static.WithInterval(time.Hour)), pollingSource(t, server.URL))
	names := []string{sources.APISource, sources.FileSource, sources.HTTPSource}
	for range names {
		r.update()
	}
	safe := func(name string) func() bool { return func() bool { return r.SafeToPrune(name) } }
	for _, name := range names {
		require.Eventually(t, safe(name), patience, time.Millisecond, name)
	}
	server.now(status(500))
	require.Eventually(t, func() bool { return !r.SafeToPrune(sources.HTTPSource) }, patience, time.Millisecond)
	require.True(t, r.SafeToPrune(sources.APISource))
	require.True(t, r.SafeToPrune(sources.FileSource))
}

// What was good before and is kept hides nothing. What was never good may be a pod that somebody
// runs.
func TestSafeToPruneFilesThatAreWrong(t *testing.T) {
	path := folder(t)
	in := func(name string) string { return filepath.Join(path, name) }
	put(t, in("a.yaml"), manifestOf("a", "v1"))
	r := watching(t, path)
	r.expect("ADD file a-node-1=v1")
	safe := func(want bool, why string) {
		t.Helper()
		require.Eventually(t, func() bool { return r.SafeToPrune(sources.FileSource) == want }, patience, time.Millisecond, why)
	}
	safe(true, "all is well")
	put(t, in("a.yaml"), "kind: Pod")
	r.problem("a.yaml")
	safe(true, "its pod is kept")
	put(t, in("a.yaml"), manifestOf("a", "v1")+"---\nkind: Pod\n")
	r.problem("document 2")
	safe(true, "the second document has never declared anything since the file was good")
	put(t, in("b.yaml"), "kind: Pod")
	r.problem("b.yaml")
	safe(false, "nobody knows what a new file declares that is no good")
	put(t, in("b.yaml"), manifestOf("b", "v1")+"---\nkind: Pod\n")
	r.expect("ADD file b-node-1=v1")
	safe(false, "nor what its second document does")
	put(t, in("b.yaml"), manifestOf("b", "v1"))
	r.healthyBut("a.yaml")
	safe(true, "only a.yaml is wrong")
	put(t, in("c.yaml"), manifestOf("a", "v2"))
	r.problem("stands by")
	safe(true, "what stands by is listed")
	require.NoError(t, os.Symlink("nowhere", in("d.yaml")))
	r.problem("d.yaml")
	safe(false, "it cannot be read, and never could")
	require.NoError(t, os.Remove(in("d.yaml")))
	safe(true, "it is gone")
	require.NoError(t, os.Rename(path, path+".away"))
	r.problem("has gone away")
	safe(false, "nothing can be read")
}

func TestSafeToPruneItemsThatAreWrong(t *testing.T) {
	server := serve(t, body(podList(item("a", "v1"), item("b", ""))))
	r := start(t, pollingSource(t, server.URL))
	r.expect("ADD http a-node-1=v1")
	safe := func() bool { return r.SafeToPrune(sources.HTTPSource) }
	require.False(t, safe(), "b has never been good")
	server.now(body(podList(item("a", "v1"), item("b", "v1"))))
	r.expect("ADD http b-node-1=v1")
	require.Eventually(t, safe, patience, time.Millisecond)
	server.now(body(podList(item("b", ""))))
	r.expect("REMOVE http a-node-1=v1")
	r.problem("item 1")
	require.Eventually(t, safe, patience, time.Millisecond, "b is kept")
	require.Equal(t, 1, r.Status()[0].Pods)
}

func TestSafeToPruneLikeTheKubeletWantsNoProblem(t *testing.T) {
	k := likeKubelet(t, "", "a.yaml", podV1)
	k.expect("ADD file p-node-1=v1")
	k.watched()
	require.Eventually(t, func() bool { return k.SafeToPrune(sources.FileSource) }, patience, time.Millisecond)
	k.put("a.yaml", noPod)
	k.problem("a.yaml")
	require.False(t, k.SafeToPrune(sources.FileSource))
}

// holder reads from an API server.
type holder struct{ *scripted }

func (holder) HoldsMirrors() {}

func TestMerged(t *testing.T) {
	api, file, web := newScripted(sources.APISource), newScripted(sources.FileSource), newScripted(sources.HTTPSource)
	r := start(t, sources.Custom(holder{api}), sources.Custom(file), sources.Custom(web))
	mirror := func(hash string) func(*corev1.Pod) {
		return annotation(manifest.MirrorAnnotation, hash)
	}
	hash := func(hash string) func(*corev1.Pod) { return annotation(manifest.HashAnnotation, hash) }
	api.set(t,
		podOf("api", "v1", phase(corev1.PodRunning)),
		podOf("left", "v1", mirror("1"), phase(corev1.PodRunning)),
		podOf("old", "v1", mirror("1"), phase(corev1.PodRunning)),
		podOf("static", "v1", mirror("1"), phase(corev1.PodRunning)))
	file.set(t, podOf("new", "v1", hash("1")), podOf("old", "v2", hash("2")), podOf("static", "v1", hash("1")), podOf("twice", "file"))
	web.set(t, podOf("twice", "http"), podOf("api", "http"))
	for range 3 {
		r.update()
	}
	type entry struct {
		name, image   string
		sources       []string
		mirror, fresh bool
		phase         corev1.PodPhase
	}
	var got []entry
	for _, p := range r.Merged() {
		got = append(got, entry{p.Pod.Name, p.Pod.Spec.Containers[0].Image, p.Sources, p.Mirror != nil, p.MirrorCurrent, p.Status().Phase})
	}
	require.Equal(t, []entry{
		{"api", "v1", []string{"api", "http"}, false, false, corev1.PodRunning},
		{"left", "v1", nil, true, false, corev1.PodRunning},
		{"new", "v1", []string{"file"}, false, false, ""},
		{"old", "v2", []string{"file"}, true, false, corev1.PodRunning},
		{"static", "v1", []string{"file"}, true, true, corev1.PodRunning},
		{"twice", "file", []string{"file", "http"}, false, false, ""},
	}, got)
}

// TestWaitSynced ends with the first state of all sources, with ctx or with Run, and says why.
func TestWaitSynced(t *testing.T) {
	idle := sources.New("node-1", sources.Custom(newScripted("s")))
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the test has no more time"))
	require.EqualError(t, idle.WaitSynced(ended), "not synced: sources: Run has not been called: the test has no more time")

	first, second := newScripted("first"), newScripted("second")
	r := start(t, sources.Custom(first), sources.Custom(second))
	second.tell(sources.Report{Problems: []error{errors.New("nothing there")}})
	first.set(t)
	r.expect("ADD first")
	err := r.WaitSynced(ended)
	require.ErrorContains(t, err, "second: not read yet: nothing there: the test has no more time")
	require.ErrorIs(t, err, context.Cause(ended))
	synced := make(chan error)
	go func() { synced <- r.WaitSynced(t.Context()) }()
	second.set(t)
	r.expect("ADD second")
	require.NoError(t, <-synced)
	require.NoError(t, r.WaitSynced(ended), "it is, whatever ctx says")

	over := start(t, sources.Custom(newScripted("s")))
	go func() { synced <- over.WaitSynced(t.Context()) }()
	over.stop()
	require.EqualError(t, <-synced, "sources: Run has ended")
}
