package sources_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
)

// podOf is a pod "default/name" with an image, and what the edits make of it.
func podOf(name, image string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func uid(uid string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.UID = types.UID(uid) }
}

func label(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"label": value} }
}

func annotation(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func finalizer(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Finalizers = []string{name}
		p.ResourceVersion = "7"
		p.OwnerReferences = []metav1.OwnerReference{{Name: name}}
	}
}

func deleted(grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		at := metav1.Unix(1_900_000_000, 0)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}
}

func TestOperations(t *testing.T) {
	none := []*corev1.Pod{}
	old := []*corev1.Pod{podOf("p", "v1")}
	for _, row := range []struct {
		name        string
		before, now []*corev1.Pod
		want        []string
	}{
		{"new", none, old, []string{"ADD s p=v1"}},
		{"gone", old, none, []string{"REMOVE s p=v1"}},
		{"spec", old, []*corev1.Pod{podOf("p", "v2")}, []string{"UPDATE s p=v2"}},
		{"label", old, []*corev1.Pod{podOf("p", "v1", label("x"))}, []string{"UPDATE s p=v1"}},
		{"annotation", old, []*corev1.Pod{podOf("p", "v1", annotation("a", "b"))}, []string{"UPDATE s p=v1"}},
		{"status", old, []*corev1.Pod{podOf("p", "v1", phase("Running"))}, []string{"RECONCILE s p=v1"}},
		{"spec and status", old, []*corev1.Pod{podOf("p", "v2", phase("Running"))}, []string{"UPDATE s p=v2"}},
		{"deleted", old, []*corev1.Pod{podOf("p", "v1", deleted(30))}, []string{"DELETE s p=v1"}},
		{
			"status of a pod that is going", []*corev1.Pod{podOf("p", "v1", deleted(30))},
			[]*corev1.Pod{podOf("p", "v1", deleted(30), phase("Failed"))},
			[]string{"RECONCILE s p=v1"},
		},
		{
			"forced", []*corev1.Pod{podOf("p", "v1", deleted(30))}, []*corev1.Pod{podOf("p", "v1", deleted(0))},
			[]string{"DELETE s p=v1"},
		},
		{
			"spec of a pod that is going", []*corev1.Pod{podOf("p", "v1", deleted(30))},
			[]*corev1.Pod{podOf("p", "v2", deleted(30))},
			[]string{"DELETE s p=v2"},
		},
		{"another pod of the name", old, []*corev1.Pod{podOf("p", "v2", uid("2"))}, []string{"REMOVE s p=v1", "ADD s p=v2"}},
		{
			"every operation at once", []*corev1.Pod{
				podOf("again", "v1"), podOf("delete", "v1"), podOf("reconcile", "v1"), podOf("remove-b", "v1"),
				podOf("remove-a", "v1"), podOf("same", "v1"), podOf("update", "v1"),
			},
			[]*corev1.Pod{
				podOf("update", "v2"), podOf("same", "v1"), podOf("reconcile", "v1", phase("Failed")),
				podOf("delete", "v1", deleted(1)), podOf("again", "v2", uid("2")), podOf("add-b", "v1"), podOf("add-a", "v1"),
			},
			[]string{
				"REMOVE s again=v1 remove-a=v1 remove-b=v1", "ADD s add-a=v1 add-b=v1 again=v2", "UPDATE s update=v2",
				"DELETE s delete=v1", "RECONCILE s reconcile=v1",
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			source := newScripted("s")
			r := start(t, sources.Custom(source))
			source.set(t, row.before...)
			first := r.update()
			require.Equal(t, sources.Add, first.Op)
			require.Len(t, first.Pods, len(row.before))
			source.set(t, row.now...)
			r.expect(row.want...)
		})
	}
}

func TestWhatIsNoNews(t *testing.T) {
	mark := podOf("p", "marked")
	for _, row := range []struct {
		name string
		now  *corev1.Pod
	}{
		{"the same state again", podOf("p", "v1")},
		{"bookkeeping", podOf("p", "v1", finalizer("f"))},
		{"a node's own annotation", podOf("p", "v1", annotation(manifest.SeenAnnotation, "x"))},
		{"another node's mark", podOf("p", "v1", annotation(manifest.MirrorAnnotation, "x"))},
	} {
		t.Run(row.name, func(t *testing.T) {
			source := newScripted("s")
			r := start(t, sources.Custom(source))
			source.set(t, podOf("p", "v1"))
			r.expect("ADD s p=v1")
			source.set(t, row.now)
			source.set(t, mark)
			r.expect("UPDATE s p=marked")
		})
	}
}

func TestTheWholeNewObjectIsDelivered(t *testing.T) {
	source := newScripted("s")
	r := start(t, sources.Custom(source))
	source.set(t, podOf("p", "v1"))
	r.expect("ADD s p=v1")
	source.set(t, podOf("p", "v1", finalizer("f"), phase("Running")))
	u := r.update()
	require.Equal(t, sources.Reconcile, u.Op)
	require.Equal(t, "7", u.Pods[0].ResourceVersion)
	require.Equal(t, []string{"f"}, u.Pods[0].Finalizers)
	require.Len(t, u.Pods[0].OwnerReferences, 1)
}

func TestAnEmptyFirstStateIsTold(t *testing.T) {
	source := newScripted("s")
	r := start(t, sources.Custom(source))
	source.set(t)
	u := r.update()
	require.Equal(t, sources.PodUpdate{Op: sources.Add, Source: "s", Pods: []*corev1.Pod{}}, u)
	source.set(t) // an empty state that is not the first one is no news
	source.set(t, podOf("p", "v1"))
	r.expect("ADD s p=v1")
	source.set(t)
	r.expect("REMOVE s p=v1")
}

func TestAnnotationsOfTheMerge(t *testing.T) {
	source := newScripted("s")
	r := start(t, sources.Custom(source))
	given := podOf("p", "v1", annotation(manifest.SourceAnnotation, "elsewhere"))
	copied := given.DeepCopy()
	source.set(t, given)
	begin := time.Now()
	added := r.update().Pods[0]
	require.Equal(t, "s", added.Annotations[manifest.SourceAnnotation])
	seen, err := time.Parse(time.RFC3339Nano, added.Annotations[manifest.SeenAnnotation])
	require.NoError(t, err)
	require.WithinDuration(t, begin, seen, patience)

	source.set(t, podOf("p", "v2"))
	updated := r.update().Pods[0]
	require.Equal(t, added.Annotations[manifest.SeenAnnotation], updated.Annotations[manifest.SeenAnnotation])

	source.set(t)
	require.Same(t, updated, r.update().Pods[0], "a removed pod comes as it was last told")

	source.set(t, podOf("p", "v2"))
	again := r.update().Pods[0]
	require.NotEqual(t, added.Annotations[manifest.SeenAnnotation], again.Annotations[manifest.SeenAnnotation])
	require.Equal(t, copied, given, "the source's own object is not touched")
}

func TestSynced(t *testing.T) {
	a, b := newScripted("a"), newScripted("b")
	r := start(t, sources.Custom(a), sources.Custom(b))
	a.set(t, podOf("p", "v1"))
	r.expect("ADD a p=v1")
	b.set(t)
	require.Never(t, func() bool { return isClosed(r.Synced()) }, 50*time.Millisecond, 5*time.Millisecond,
		"b has been set, but nobody has read it")
	r.expect("ADD b")
	require.Eventually(t, func() bool { return isClosed(r.Synced()) }, patience, time.Millisecond)
	for _, status := range r.Status() {
		require.True(t, status.Seen, status.Source)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestASlowReaderGetsOneDifference(t *testing.T) {
	const states = 10_000
	source, other := newScripted("s"), newScripted("other")
	r := start(t, sources.Custom(source), sources.Custom(other))
	for i := range states {
		source.set(t, podOf(fmt.Sprintf("p-%d", i), "v1"), podOf("steady", fmt.Sprint(i)))
	}
	other.set(t) // nobody has read yet, and yet it can be set
	var last string
	count := 0
	held := map[string]string{}
	for last != "p-9999" || held["steady"] != "9999" {
		u := r.update()
		if u.Source == "other" {
			continue
		}
		count++
		for _, pod := range u.Pods {
			if u.Op == sources.Remove {
				delete(held, pod.Name)
				continue
			}
			held[pod.Name] = pod.Spec.Containers[0].Image
			if pod.Name != "steady" {
				last = pod.Name
			}
		}
	}
	require.Equal(t, map[string]string{"p-9999": "v1", "steady": "9999"}, held)
	require.Less(t, count, 3*65+3, "what was not read was merged")
}

func TestWhatASlowReaderCosts(t *testing.T) {
	source := newScripted("s")
	start(t, sources.Custom(source))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	pad := func(p *corev1.Pod) { p.Labels = map[string]string{"pad": string(make([]byte, 10_000))} }
	for i := range 10_000 { // 100 MB if all were kept
		source.set(t, podOf(fmt.Sprintf("p-%d", i), "v1", pad))
	}
	require.Less(t, int64(heap())-int64(before), int64(10<<20))
}

func TestRunRefuses(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorContains(t, sources.New("node-1").Run(ctx), "no source")
	require.ErrorContains(t, sources.New("", sources.Custom(newScripted("s"))).Run(ctx), "no name")
	for _, name := range []string{"Node-1", "node_1", "../node", "node 1", strings.Repeat("n", 254)} {
		err := sources.New(name, sources.Custom(newScripted("s"))).Run(ctx)
		require.ErrorContains(t, err, fmt.Sprintf("sources: %q is not the name of a node: a lowercase RFC 1123 subdomain must", name)[:60])
		require.ErrorContains(t, err, "give New the name that pods have in spec.nodeName")
	}
	none := sources.New("node-1")
	require.Error(t, none.Run(ctx))
	_, open := <-none.Updates()
	require.False(t, open, "a reader of a run that could not begin does not wait for ever")
	twice := sources.New("node-1", sources.Custom(newScripted("s")))
	require.NoError(t, twice.Run(ctx))
	require.ErrorContains(t, twice.Run(ctx), "twice")
}

func TestASourceThatFailsEndsAlone(t *testing.T) {
	good, bad := newScripted("good"), newScripted("bad")
	r := start(t, sources.Custom(good), sources.Custom(bad))
	cause := errors.New("out of paper")
	bad.ends <- cause
	r.problem("the bad source has ended: out of paper")
	good.set(t, podOf("p", "v1"))
	r.expect("ADD good p=v1")
	status := r.Status()[1]
	require.ErrorIs(t, status.Problems[0], cause)
	require.Equal(t, 1, status.Errors)
	require.False(t, isClosed(r.Synced()))
}

func TestRunFailsWhenEverySourceHas(t *testing.T) {
	a, b := newScripted("a"), newScripted("b")
	r := start(t, sources.Custom(a), sources.Custom(b))
	a.set(t, podOf("p", "v1"))
	first, second := errors.New("first"), errors.New("second")
	a.ends <- first
	b.ends <- second
	r.expect("ADD a p=v1") // what was set before is told
	_, open := <-r.Updates()
	require.False(t, open)
	<-r.done
	require.ErrorIs(t, r.err, first)
	require.ErrorIs(t, r.err, second)
}

func TestASourceMayEndWhenAllIsSaid(t *testing.T) {
	source := newScripted("s")
	r := start(t, sources.Custom(source))
	source.set(t, podOf("p", "v1"))
	source.ends <- nil
	r.expect("ADD s p=v1")
	require.Never(t, func() bool { return isClosed(r.done) }, 50*time.Millisecond, 5*time.Millisecond)
	require.Empty(t, r.Status()[0].Problems)
	r.stop()
	<-r.done
	require.NoError(t, r.err)
}

func TestTheEndOfTheContextEndsARunThatNobodyReads(t *testing.T) {
	source := newScripted("s")
	r := start(t, sources.Custom(source))
	source.set(t, podOf("p", "v1"))
	r.stop()
	<-r.done
	require.NoError(t, r.err)
	_, open := <-r.Updates()
	require.False(t, open)
}

// Once half a plan was given up for the end of the context, the next plan was made from a state
// that nobody had been told, and removed pods that were nil.
func TestTheEndOfTheContextInTheMiddleOfAChange(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) { // in which the reader is never late
			source := newScripted("s")
			r := start(t, sources.Custom(source))
			source.set(t, podOf("p", "v1"))
			source.set(t, podOf("p", "v2", uid("2")))
			source.set(t, podOf("p", "v3", uid("3")))
			source.set(t)
			r.expect("ADD s p=v1", "REMOVE s p=v1")
			r.stop()
			rest := []string{}
			for u := range r.Updates() {
				require.NotContains(t, u.Pods, (*corev1.Pod)(nil))
				rest = append(rest, describe(u))
			}
			want := []string{"ADD s p=v2", "REMOVE s p=v2", "ADD s p=v3", "REMOVE s p=v3"}
			require.Equal(t, want[:len(rest)], rest)
		})
	}
}
