package watchcache_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/internal/cachetest"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/storetest"
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

var (
	start    = cachetest.Start
	seen     = cachetest.Seen
	onNode   = cachetest.OnNode
	labelled = cachetest.Labelled
)

type follow = cachetest.Follow

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
			f := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version}))
			require.NoError(t, c.Add(stored("new", 9)))
			f.Require(want...)
			require.NoError(t, c.Add(stored("last", 10)))
			f.Require("ADDED last@10")
		})
	}
	f := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "4"}))
	f.RequireExpired()
}

func TestWatcherOutsideTheWindowExpires(t *testing.T) {
	c := newCache(t, watchcache.WithWindow(3))
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	slow := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"}))
	for version := 2; version <= 5; version++ {
		require.NoError(t, c.Add(stored("a", version)))
	}
	slow.RequireExpired()
	start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})).RequireExpired()
	start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "2"})).
		Require("MODIFIED a@3", "MODIFIED a@4", "MODIFIED a@5")
}

func TestCompactForgetsTheWindow(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	behind := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"}))
	require.NoError(t, c.Add(stored("a", 2)))
	upToDate := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "2"}))
	c.Compact()
	require.NoError(t, c.Add(stored("b", 3)))
	behind.RequireExpired()
	upToDate.Require("ADDED b@3")
	start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "2"})).Require("ADDED b@3")
}

func TestSelectorsTurnChangesIntoTheirOwn(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	watchOf := func(labels, fields string) *follow {
		return start(t, c.Watch(t.Context(), metav1.ListOptions{
			LabelSelector: labels, FieldSelector: fields, ResourceVersion: "1",
		}))
	}
	byNode := watchOf("", "spec.nodeName=n1")
	byLabel := watchOf("app=web", "")
	byName := watchOf("", "metadata.name=b")
	elsewhere := watchOf("", "metadata.namespace=other")

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

	byLabel.Require("ADDED a@2", "MODIFIED a@3", "DELETED a@4")
	byNode.Require("ADDED a@3", "MODIFIED a@4")
	e, err, _ := byNode.Pull()
	require.NoError(t, err)
	require.Equal(t, "DELETED a@5", seen(e))
	require.Equal(t, "n1", e.Object.Spec.NodeName, "the last state that matched")
	byName.Require("ADDED b@7", "ADDED b@8")
	elsewhere.Require("ADDED b@8")
}

func TestReplaceIsADifference(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(stored("kept", 3), stored("changed", 4)), store.At("5")))
	f := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"}))
	require.NoError(t, c.Replace(store.Items(stored("kept", 3), stored("new", 9), stored("changed", 8)), store.At("20")))
	f.Require("MODIFIED changed@8", "ADDED new@9")
	start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"})).Require("MODIFIED changed@8", "ADDED new@9")
}

// TestReplaceTellsALossAlone: nobody knows when a watcher lost an object. A watcher that would be
// told more gets a 410, and so does a watch from a version in between.
func TestReplaceTellsALossAlone(t *testing.T) {
	c := newCache(t)
	watch := func(version, name string) *cachetest.Follow {
		options := metav1.ListOptions{ResourceVersion: version}
		if name != "" {
			options.FieldSelector = "metadata.name=" + name
		}
		return start(t, c.Watch(t.Context(), options))
	}
	recreated := stored("recreated", 12)
	recreated.UID = "another"
	require.NoError(t, c.Replace(store.Items(stored("gone", 2), stored("kept", 3), stored("recreated", 4)), store.At("5")))
	all, ofGone, ofNew, ofRecreated := watch("5", ""), watch("5", "gone"), watch("5", "new"), watch("5", "recreated")
	ahead := watch("7", "kept")
	require.NoError(t, c.Replace(store.Items(stored("kept", 3), stored("new", 9), recreated), store.At("20")))
	all.RequireExpired()
	ofRecreated.RequireExpired()
	ahead.RequireExpired()
	ofGone.Require("DELETED gone@20")
	ofNew.Require("ADDED new@9")
	for _, version := range []string{"6", "9", "19"} {
		watch(version, "gone").RequireExpired()
		watch(version, "kept").RequireExpired()
	}
	watch("5", "gone").Require("DELETED gone@20")
	watch("5", "").RequireExpired()
	later := watch("20", "")
	require.NoError(t, c.Add(stored("later", 21)))
	later.Require("ADDED later@21")
}

// A watcher that comes after the list's version was known must still be told.
func TestReplaceTellsOtherContentUnderTheSameVersion(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(stored("a", 2), stored("b", 3)), store.At("5")))
	f := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"}))
	changed := stored("a", 2)
	changed.Annotations = map[string]string{"default": "set"}
	require.NoError(t, c.Replace(store.Items(changed, stored("b", 3)), store.At("20")))
	f.Require("MODIFIED a@2") // the event is at 20, its object at its own version
	start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"})).Require("MODIFIED a@2")
}

func TestReplaceThatGoesBackExpiresWatchers(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(stored("a", 8)), store.At("9")))
	f := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "9"}))
	require.NoError(t, c.Replace(store.Items(stored("a", 2)), store.At("3")))
	f.RequireExpired()
	start(t, c.Watch(t.Context(), metav1.ListOptions{})).Require("ADDED a@2")
}

func TestReplaceLargerThanTheWindowExpiresWatchers(t *testing.T) {
	c := newCache(t, watchcache.WithWindow(2))
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	f := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"}))
	require.NoError(t, c.Replace(store.Items(stored("a", 2), stored("b", 3), stored("c", 4)), store.At("4")))
	f.RequireExpired()
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
	_, err, _ := start(t, c.Watch(t.Context(), metav1.ListOptions{})).Pull()
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	f := start(t, c.Watch(t.Context(), metav1.ListOptions{}))
	require.NoError(t, c.Add(stored("a", 2)))
	f.Require("ADDED a@2")
}

func TestSendInitialEvents(t *testing.T) {
	yes, no := true, false
	initial := func(rv string, send *bool) metav1.ListOptions {
		return metav1.ListOptions{
			ResourceVersion: rv, SendInitialEvents: send, AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t)
		require.NoError(t, c.Replace(store.Items(stored("b", 3), stored("a", 2)), store.At("5")))
		for _, rv := range []string{"", "0", "1", "5"} {
			f := start(t, c.Watch(t.Context(), initial(rv, &yes)))
			f.Require("ADDED a@2", "ADDED b@3", "BOOKMARK 5 end", "BOOKMARK 5")
		}
		without := start(t, c.Watch(t.Context(), initial("", &no)))
		future := start(t, c.Watch(t.Context(), initial("7", &yes)))
		go func() {
			time.Sleep(time.Second) // of the simulated clock
			_ = c.Add(stored("c", 7))
		}()
		future.Require("ADDED a@2", "ADDED b@3", "ADDED c@7", "BOOKMARK 7 end")
		without.Require("ADDED c@7")

		tooFar := start(t, c.Watch(t.Context(), initial("100", &yes)))
		_, err, _ := tooFar.Pull()
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
		f := start(t, c.Watch(t.Context(), metav1.ListOptions{
			ResourceVersion: "5", AllowWatchBookmarks: true, TimeoutSeconds: ptr.To[int64](90),
		}))
		f.Require("BOOKMARK 5")
		require.Equal(t, time.Minute, elapsed())
		require.NoError(t, c.Bookmark("8"))
		f.Require("BOOKMARK 8")
		require.Equal(t, 88*time.Second, elapsed(), "two seconds before the end")
		f.RequireEnd()
		require.Equal(t, 90*time.Second, elapsed())

		silent := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "8", TimeoutSeconds: ptr.To[int64](3600)}))
		silent.RequireEnd()
	})
}

// TestAWatchMayBeginWithABookmark, once it has come as far, and after the events that are there.
func TestAWatchMayBeginWithABookmark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, watchcache.WithBookmarkFirst())
		require.NoError(t, c.Replace(store.Items(stored("a", 4)), store.At("5")))
		watch := func(version string) *cachetest.Follow {
			return start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}))
		}
		began := time.Now()
		watch("5").Require("BOOKMARK 5")
		require.NoError(t, c.Add(stored("b", 6)))
		watch("5").Require("ADDED b@6", "BOOKMARK 6")
		require.Equal(t, began, time.Now())
		silent := start(t, c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "6", TimeoutSeconds: ptr.To[int64](30)}))
		silent.RequireEnd()
		future := watch("8")
		require.NoError(t, c.Bookmark("9"))
		future.Require("BOOKMARK 9")
	})
}

func TestFutureVersionIsWaitedForInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t)
		require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("5")))
		f := start(t, c.Watch(t.Context(), metav1.ListOptions{
			ResourceVersion: "8", AllowWatchBookmarks: true, TimeoutSeconds: ptr.To[int64](600),
		}))
		go func() {
			for version := 6; version <= 9; version++ {
				time.Sleep(130 * time.Second) // of the simulated clock
				_ = c.Add(stored("p"+strconv.Itoa(version), version))
			}
		}()
		f.Require("BOOKMARK 8", "BOOKMARK 8")
		f.Require("ADDED p9@9")
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t)
		require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("5")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start(t, c.Watch(ctx, metav1.ListOptions{ResourceVersion: "5"})).RequireEnd()
		require.Error(t, ctx.Err())
	})
}

func TestRangingAgainGoesOn(t *testing.T) {
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(stored("a", 1), stored("b", 2), stored("c", 3)), store.At("5")))
	var got []string
	events := c.Watch(t.Context(), metav1.ListOptions{})
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
		options metav1.ListOptions
		is      func(error) bool
	}{
		"initial events without a match": {metav1.ListOptions{SendInitialEvents: &yes}, apierrors.IsInvalid},
		"initial events, exact": {metav1.ListOptions{
			SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		}, apierrors.IsInvalid},
		"a match without initial events": {metav1.ListOptions{
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}, apierrors.IsInvalid},
		"no number": {metav1.ListOptions{ResourceVersion: "abc"}, func(err error) bool {
			return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
		}},
		"unknown field": {metav1.ListOptions{FieldSelector: "spec.color=red"}, apierrors.IsBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t)
			require.NoError(t, c.Bookmark("1"))
			_, err, ok := start(t, c.Watch(t.Context(), row.options)).Pull()
			require.True(t, ok)
			require.True(t, row.is(err), "%v", err)
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := apiserver.NewServer(watchcache.WithWindow(0))
	require.ErrorContains(t, err, "WithWindow(0)")
	_, err = watchcache.NewCache(watchcache.Pods(), watchcache.WithBookmarkInterval(0))
	require.ErrorContains(t, err, "WithBookmarkInterval(0s)")
	_, err = apiserver.NewServer(watchcache.WithFreshWait(-1))
	require.ErrorContains(t, err, "WithFreshWait(-1ns)")
	_, err = watchcache.NewCache(watchcache.Kind[*corev1.Pod]{Version: "v1", Plural: "pods"})
	require.ErrorContains(t, err, "Kind")
	_, err = watchcache.NewCache(watchcache.Kind[*corev1.Pod]{
		Version: "v1", Plural: "pods", Kind: "Pod", Fields: []watchcache.Field[*corev1.Pod]{{Label: "x"}},
	})
	require.ErrorContains(t, err, "needs a Label and a Value")
}
