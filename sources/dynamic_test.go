package sources_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

func TestSourcesOfOneKindWithNames(t *testing.T) {
	one, two := folder(t), folder(t)
	put(t, one+"/a.yaml", manifestOf("p", "one"))
	put(t, two+"/a.yaml", manifestOf("p", "two"))
	hourly := static.WithInterval(time.Hour)
	r := start(t, sources.File(one, hourly).Named("one"), sources.File(two, hourly).Named("two"))
	first, second := r.update(), r.update()
	require.ElementsMatch(t, []string{"ADD one p-node-1=one", "ADD two p-node-1=two"}, []string{describe(first), describe(second)})
	require.Equal(t, first.Source, first.Pods[0].Annotations[manifest.SourceAnnotation])
	require.Eventually(t, func() bool { return r.SafeToPrune("one") && r.SafeToPrune("two") }, patience, time.Millisecond)
	require.False(t, r.SafeToPrune(sources.FileSource))
}

func TestAddWhileRunning(t *testing.T) {
	a, b := newScripted("a"), newScripted("b")
	r := start(t, sources.Custom(a))
	require.NoError(t, r.Add(sources.Custom(b)))
	a.set(t)
	r.expect("ADD a")
	require.Never(t, func() bool { return isClosed(r.Synced()) }, 30*time.Millisecond, 5*time.Millisecond)
	b.set(t, podOf("p", "v1"))
	r.expect("ADD b p=v1")
	require.Eventually(t, func() bool { return isClosed(r.Synced()) }, patience, time.Millisecond)
	r.stop()
	<-r.done
	require.ErrorContains(t, r.Add(sources.Custom(newScripted("late"))), "Run has ended")
}

func TestRemoveWhileRunning(t *testing.T) {
	a, b := newScripted("a"), newScripted("b")
	r := start(t, sources.Custom(a), sources.Custom(b))
	a.set(t, podOf("p", "v1"), podOf("q", "v1"))
	r.expect("ADD a p=v1 q=v1")
	a.set(t, podOf("q", "v2"), podOf("never", "told"))
	r.expect("REMOVE a p=v1")
	require.NoError(t, r.Remove("a"))
	u := r.next()
	if u != "REMOVE a q=v1" { // what was on its way to the reader may have been taken
		require.Equal(t, "ADD a never=told", u)
		u = r.next()
		if u == "UPDATE a q=v2" {
			require.Equal(t, "REMOVE a never=told q=v2", r.next())
		} else {
			require.Equal(t, "REMOVE a never=told q=v1", u)
		}
	}
	require.Eventually(t, func() bool { return len(r.Status()) == 1 }, patience, time.Millisecond)
	require.Empty(t, r.Merged())
	require.False(t, r.SafeToPrune("a"))
	require.EqualError(t, r.Remove("a"), `sources: there is no source "a" to remove`)
	b.set(t)
	r.expect("ADD b")
	require.Eventually(t, func() bool { return isClosed(r.Synced()) }, patience, time.Millisecond)
	again := newScripted("a")
	require.NoError(t, r.Add(sources.Custom(again)))
	again.set(t, podOf("p", "v1"))
	r.expect("ADD a p=v1")
}

func TestRemoveOfASourceThatSaidNothing(t *testing.T) {
	a, b := newScripted("a"), newScripted("b")
	r := start(t, sources.Custom(a), sources.Custom(b))
	require.NoError(t, r.Remove("a"))
	b.set(t)
	r.expect("ADD b")
	require.Eventually(t, func() bool { return isClosed(r.Synced()) }, patience, time.Millisecond)
}

func TestRemoveLeavesSourcesThatHaveAllFailed(t *testing.T) {
	a, b := newScripted("a"), newScripted("b")
	r := start(t, sources.Custom(a), sources.Custom(b))
	a.ends <- errors.New("out of paper")
	r.problem("out of paper")
	require.NoError(t, r.Remove("b"))
	<-r.done
	require.ErrorContains(t, r.err, "out of paper")
}

func TestAddAndRemoveBeforeRun(t *testing.T) {
	s := sources.New("node-1", sources.Custom(newScripted("a")))
	require.NoError(t, s.Remove("a"))
	require.ErrorContains(t, s.Run(t.Context()), "no source")
	require.ErrorContains(t, s.Add(sources.Custom(newScripted("b"))), "Run has ended")
	s = sources.New("node-1")
	require.NoError(t, s.Add(sources.Custom(newScripted("b"))))
	require.Len(t, s.Status(), 1)
}
