package watchcache_test

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/storetest"
	"github.com/tributary-go/tributary/watchcache"
)

func newCache(t testing.TB, options ...watchcache.Option) *watchcache.Cache[*corev1.Pod] {
	t.Helper()
	c, err := watchcache.NewCache(watchcache.Pods(), options...)
	require.NoError(t, err)
	return c
}

func TestCacheConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Rig {
		c := newCache(t, watchcache.WithWindow(10))
		return storetest.Rig{
			Store:           c,
			Objects:         func() []*corev1.Pod { return c.Snapshot().Sorted() },
			ResourceVersion: func() string { return c.Snapshot().ResourceVersion() },
		}
	})
	var _ store.Bookmarker = newCache(t)
}

// seen is an event in one line: "ADDED a@3".
func seen(e watchcache.Event[*corev1.Pod]) string {
	if e.Type == watch.Bookmark {
		line := "BOOKMARK " + e.ResourceVersion
		if e.InitialEventsEnd {
			line += " end"
		}
		return line
	}
	return fmt.Sprintf("%s %s@%s", e.Type, e.Object.Name, e.Object.ResourceVersion)
}

// follow pulls events one at a time.
type follow struct {
	t    testing.TB
	pull func() (watchcache.Event[*corev1.Pod], error, bool)
}

func start(t testing.TB, events iter.Seq2[watchcache.Event[*corev1.Pod], error]) *follow {
	t.Helper()
	pull, stop := iter.Pull2(events)
	t.Cleanup(stop)
	return &follow{t, pull}
}

// require takes the next len(want) events.
func (f *follow) require(want ...string) {
	f.t.Helper()
	for _, line := range want {
		e, err, ok := f.pull()
		require.NoError(f.t, err)
		require.True(f.t, ok, "the watch has ended before %s", line)
		require.Equal(f.t, line, seen(e))
	}
}

func (f *follow) requireExpired() {
	f.t.Helper()
	_, err, ok := f.pull()
	require.True(f.t, ok)
	require.True(f.t, apierrors.IsResourceExpired(err), "%v", err)
	_, _, ok = f.pull()
	require.False(f.t, ok, "the error is the last thing")
}

func (f *follow) requireEnd() {
	f.t.Helper()
	e, err, ok := f.pull()
	require.False(f.t, ok, "%v %v", e, err)
}

var stored = storetest.Pod

func TestWatchStartsWhereItIsAskedTo(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(stored("b", 3), stored("a", 2)), store.At("5")))
	require.NoError(t, c.Update(stored("b", 6)))
	require.NoError(t, c.Delete(stored("a", 7)))
	for version, want := range map[string][]string{
		"":  {"ADDED b@6", "ADDED new@9"},
		"0": {"ADDED b@6", "ADDED new@9"},
		"5": {"MODIFIED b@6", "DELETED a@7", "ADDED new@9"},
		"6": {"DELETED a@7", "ADDED new@9"},
		"7": {"ADDED new@9"},
		"8": {"ADDED new@9"},
		"9": {},
	} {
		t.Run("from "+version, func(t *testing.T) {
			c := newCache(t)
			require.NoError(t, c.Replace(store.Items(stored("b", 3), stored("a", 2)), store.At("5")))
			require.NoError(t, c.Update(stored("b", 6)))
			require.NoError(t, c.Delete(stored("a", 7)))
			f := start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: version}))
			require.NoError(t, c.Add(stored("new", 9)))
			f.require(want...)
			require.NoError(t, c.Add(stored("last", 10)))
			f.require("ADDED last@10")
		})
	}
	f := start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "4"}))
	f.requireExpired()
}

func TestWatcherOutsideTheWindowExpires(t *testing.T) {
	c := newCache(t, watchcache.WithWindow(3))
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	slow := start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "1"}))
	for version := 2; version <= 5; version++ {
		require.NoError(t, c.Add(stored("a", version)))
	}
	slow.requireExpired()
	start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "1"})).requireExpired()
	start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "2"})).
		require("MODIFIED a@3", "MODIFIED a@4", "MODIFIED a@5")
}

func TestCompactForgetsTheWindow(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	behind := start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "1"}))
	require.NoError(t, c.Add(stored("a", 2)))
	upToDate := start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "2"}))
	c.Compact()
	require.NoError(t, c.Add(stored("b", 3)))
	behind.requireExpired()
	upToDate.require("ADDED b@3")
	start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "2"})).require("ADDED b@3")
}

func TestSelectorsTurnChangesIntoTheirOwn(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	watchOf := func(s watchcache.Selection) *follow {
		return start(t, c.Watch(t.Context(), watchcache.WatchOptions{Selection: s, ResourceVersion: "1"}))
	}
	byNode := watchOf(watchcache.Selection{Fields: fields.OneTermEqualSelector("spec.nodeName", "n1")})
	byLabel := watchOf(watchcache.Selection{Labels: labels.SelectorFromSet(labels.Set{"app": "web"})})
	byName := watchOf(watchcache.Selection{Name: "b"})
	elsewhere := watchOf(watchcache.Selection{Namespace: "other"})

	a := func(version int, change ...func(*corev1.Pod)) *corev1.Pod {
		p := stored("a", version)
		for _, do := range change {
			do(p)
		}
		return p
	}
	require.NoError(t, c.Add(a(2, labelled("app", "web"))))
	require.NoError(t, c.Update(a(3, labelled("app", "web"), onNode("n1"))))
	require.NoError(t, c.Update(a(4, onNode("n1"))))
	require.NoError(t, c.Update(a(5, onNode("n2"))))
	require.NoError(t, c.Delete(a(6, onNode("n2"))))
	require.NoError(t, c.Add(stored("b", 7)))
	foreign := stored("b", 8)
	foreign.Namespace = "other"
	require.NoError(t, c.Add(foreign))

	byLabel.require("ADDED a@2", "MODIFIED a@3", "DELETED a@4")
	byNode.require("ADDED a@3", "MODIFIED a@4")
	e, err, _ := byNode.pull()
	require.NoError(t, err)
	require.Equal(t, "DELETED a@5", seen(e))
	require.Equal(t, "n1", e.Object.Spec.NodeName, "the last state that matched")
	byName.require("ADDED b@7", "ADDED b@8")
	elsewhere.require("ADDED b@8")
}

func TestReplaceIsADifference(t *testing.T) {
	c := newCache(t)
	recreated := stored("recreated", 12)
	recreated.UID = "another"
	require.NoError(t, c.Replace(store.Items(stored("gone", 2), stored("kept", 3), stored("recreated", 4)), store.At("5")))
	f := start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "5"}))
	require.NoError(t, c.Replace(store.Items(stored("kept", 3), stored("new", 9), recreated), store.At("20")))
	f.require("ADDED new@9", "DELETED recreated@11", "ADDED recreated@12", "DELETED gone@20")
	start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "9"})).
		require("DELETED recreated@11", "ADDED recreated@12", "DELETED gone@20")
}

func TestReplaceThatGoesBackExpiresWatchers(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(stored("a", 8)), store.At("9")))
	f := start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "9"}))
	require.NoError(t, c.Replace(store.Items(stored("a", 2)), store.At("3")))
	f.requireExpired()
	start(t, c.Watch(t.Context(), watchcache.WatchOptions{})).require("ADDED a@2")
}

func TestReplaceLargerThanTheWindowExpiresWatchers(t *testing.T) {
	c := newCache(t, watchcache.WithWindow(2))
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	f := start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "1"}))
	require.NoError(t, c.Replace(store.Items(stored("a", 2), stored("b", 3), stored("c", 4)), store.At("4")))
	f.requireExpired()
}

func TestVersionsMustBeNumbers(t *testing.T) {
	c := newCache(t)
	strange := stored("a", 1)
	strange.ResourceVersion = "one"
	require.ErrorContains(t, c.Add(strange), `"one" is not a decimal number`)
	require.ErrorContains(t, c.Replace(store.Items(strange), store.At("2")), "is not a decimal number")
	require.ErrorContains(t, c.Replace(store.Items(stored("a", 1)), store.At("two")), `"two" is not a decimal number`)
	require.ErrorContains(t, c.Bookmark(""), "is not a decimal number")
	require.Zero(t, c.Snapshot().Len())
}

func TestUnfilledCacheAsksToComeAgain(t *testing.T) {
	c := newCache(t)
	_, err, _ := start(t, c.Watch(t.Context(), watchcache.WatchOptions{})).pull()
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	f := start(t, c.Watch(t.Context(), watchcache.WatchOptions{}))
	require.NoError(t, c.Add(stored("a", 2)))
	f.require("ADDED a@2")
}

func TestSendInitialEvents(t *testing.T) {
	yes, no := true, false
	initial := func(rv string, send *bool) watchcache.WatchOptions {
		return watchcache.WatchOptions{
			ResourceVersion: rv, SendInitialEvents: send, Bookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t)
		require.NoError(t, c.Replace(store.Items(stored("b", 3), stored("a", 2)), store.At("5")))
		for _, rv := range []string{"", "0", "1", "5"} {
			f := start(t, c.Watch(t.Context(), initial(rv, &yes)))
			f.require("ADDED a@2", "ADDED b@3", "BOOKMARK 5 end", "BOOKMARK 5")
		}
		without := start(t, c.Watch(t.Context(), initial("", &no)))
		future := start(t, c.Watch(t.Context(), initial("7", &yes)))
		go func() {
			time.Sleep(time.Second) // of the simulated clock
			_ = c.Add(stored("c", 7))
		}()
		future.require("ADDED a@2", "ADDED b@3", "ADDED c@7", "BOOKMARK 7 end")
		without.require("ADDED c@7")

		tooFar := start(t, c.Watch(t.Context(), initial("100", &yes)))
		_, err, _ := tooFar.pull()
		require.True(t, apierrors.IsTimeout(err), "%v", err)
		require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge))
	})
}

func TestBookmarksAndTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t)
		require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("5")))
		began := time.Now()
		elapsed := func() time.Duration { return time.Since(began) }
		f := start(t, c.Watch(t.Context(), watchcache.WatchOptions{
			ResourceVersion: "5", Bookmarks: true, Timeout: 90 * time.Second,
		}))
		f.require("BOOKMARK 5")
		require.Equal(t, time.Minute, elapsed())
		require.NoError(t, c.Bookmark("8"))
		f.require("BOOKMARK 8")
		require.Equal(t, 88*time.Second, elapsed(), "two seconds before the end")
		f.requireEnd()
		require.Equal(t, 90*time.Second, elapsed())

		silent := start(t, c.Watch(t.Context(), watchcache.WatchOptions{ResourceVersion: "8", Timeout: time.Hour}))
		silent.requireEnd()
	})
}

func TestFutureVersionIsWaitedForInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t)
		require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("5")))
		f := start(t, c.Watch(t.Context(), watchcache.WatchOptions{
			ResourceVersion: "8", Bookmarks: true, Timeout: 10 * time.Minute,
		}))
		go func() {
			for version := 6; version <= 9; version++ {
				time.Sleep(130 * time.Second) // of the simulated clock
				_ = c.Add(stored("p"+strconv.Itoa(version), version))
			}
		}()
		f.require("BOOKMARK 8", "BOOKMARK 8")
		f.require("ADDED p9@9")
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t)
		require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("5")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start(t, c.Watch(ctx, watchcache.WatchOptions{ResourceVersion: "5"})).requireEnd()
		require.Error(t, ctx.Err())
	})
}

func TestRangingAgainGoesOn(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(stored("a", 1), stored("b", 2), stored("c", 3)), store.At("5")))
	var got []string
	events := c.Watch(t.Context(), watchcache.WatchOptions{})
	for range 3 {
		for e := range events {
			got = append(got, seen(e))
			break
		}
	}
	require.Equal(t, []string{"ADDED a@1", "ADDED b@2", "ADDED c@3"}, got)
}

func TestWatchOptionsAreChecked(t *testing.T) {
	yes := true
	for name, row := range map[string]struct {
		options watchcache.WatchOptions
		is      func(error) bool
	}{
		"initial events without a match": {watchcache.WatchOptions{SendInitialEvents: &yes}, apierrors.IsInvalid},
		"initial events, exact": {watchcache.WatchOptions{
			SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		}, apierrors.IsInvalid},
		"a match without initial events": {watchcache.WatchOptions{
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}, apierrors.IsInvalid},
		"no number": {watchcache.WatchOptions{ResourceVersion: "abc"}, apierrors.IsBadRequest},
		"unknown field": {watchcache.WatchOptions{Selection: watchcache.Selection{
			Fields: fields.OneTermEqualSelector("spec.color", "red"),
		}}, apierrors.IsBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t)
			require.NoError(t, c.Bookmark("1"))
			_, err, ok := start(t, c.Watch(t.Context(), row.options)).pull()
			require.True(t, ok)
			require.True(t, row.is(err), "%v", err)
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := watchcache.NewServer(watchcache.WithWindow(0))
	require.ErrorContains(t, err, "WithWindow(0)")
	_, err = watchcache.NewCache(watchcache.Pods(), watchcache.WithBookmarkInterval(0))
	require.ErrorContains(t, err, "WithBookmarkInterval(0s)")
	_, err = watchcache.NewServer(watchcache.WithFreshWait(-1))
	require.ErrorContains(t, err, "WithFreshWait(-1ns)")
	_, err = watchcache.NewCache(watchcache.Resource[*corev1.Pod]{Version: "v1", Plural: "pods"})
	require.ErrorContains(t, err, "Kind")
	_, err = watchcache.NewCache(watchcache.Resource[*corev1.Pod]{
		Version: "v1", Plural: "pods", Kind: "Pod", Fields: []watchcache.Field[*corev1.Pod]{{Label: "x"}},
	})
	require.ErrorContains(t, err, "needs a Label and a Value")
}
