package watchcache_test

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// follows is a watch in a goroutine of its own, which hands on what it is told.
func follows(ctx context.Context, c *watchcache.Cache[*corev1.Pod], options metav1.ListOptions) <-chan string {
	return handedOn(ctx, c.Watch(ctx, options))
}

// polls does the same by Poll.
func polls(ctx context.Context, c *watchcache.Cache[*corev1.Pod], options metav1.ListOptions) <-chan string {
	var r watchcache.Request
	err := internalversion.Convert_v1_ListOptions_To_internalversion_ListOptions(&options, &r.ListOptions, nil)
	var w *watchcache.Watcher[*corev1.Pod]
	if err == nil {
		w, err = c.Watcher(r)
	}
	return handedOn(ctx, func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		if err == nil {
			defer w.Close()
		}
		ready := make(chan struct{}, 1) // called once, it has room
		for err == nil {
			var events []watchcache.Delivery[*corev1.Pod]
			waits := false
			switch events, waits, err = w.Poll(ctx, func() { ready <- struct{}{} }); {
			case waits:
				<-ready
			case err == nil && len(events) == 0:
				return
			}
			for _, e := range events {
				if !yield(e.Event, nil) {
					return
				}
			}
		}
		yield(listwatch.Event[*corev1.Pod]{}, err)
	})
}

func handedOn(ctx context.Context, events iter.Seq2[listwatch.Event[*corev1.Pod], error]) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for e, err := range events {
			line := "410"
			if err == nil {
				line = seen(e)
			} else if !apierrors.IsResourceExpired(err) {
				line = err.Error()
			}
			select {
			case lines <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// mine is a pod that every selection of mySelections keeps.
func mine(version int) *corev1.Pod {
	p := stored("mine", version)
	onNode("n1")(p)
	labelled("app", "mine")(p)
	p.Namespace, p.Status.Phase = "home", corev1.PodRunning
	return p
}

// mySelections ask for one value or more, in every way there is.
var mySelections = map[string]metav1.ListOptions{
	"name":             {FieldSelector: "metadata.name=mine"},
	"one object":       {FieldSelector: "metadata.name=mine,metadata.namespace=home"},
	"namespace":        {FieldSelector: "metadata.namespace=home"},
	"indexed field":    {FieldSelector: "spec.nodeName=n1"},
	"field":            {FieldSelector: "status.phase=Running"},
	"label":            {LabelSelector: "app=mine"},
	"set of one label": {LabelSelector: "app in (mine)"},
	"label and more":   {LabelSelector: "app=mine,tier!=back", FieldSelector: "spec.nodeName!=n7"},
	"several values":   {LabelSelector: "app=mine", FieldSelector: "spec.nodeName=n1,status.phase=Running"},
}

// TestNobodyIsCutForTheChangesOfOthers: the window moves on many times over while a watcher of one
// value waits, and while it is slow.
func TestNobodyIsCutForTheChangesOfOthers(t *testing.T) {
	const window = 4
	for name, options := range mySelections {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCache(t, watchcache.WithWindow(window))
				require.NoError(t, c.Replace(store.Items(mine(1)), store.At("1")))
				options.ResourceVersion = "1"
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				lines := follows(ctx, c, options)
				version := 1
				for range 5 {
					synctest.Wait()
					var want []string
					for range window { // none of which it reads now
						for i := range 5 * window {
							version++
							require.NoError(t, c.Update(stored(fmt.Sprint("other", i), version)))
						}
						version++
						require.NoError(t, c.Update(mine(version)))
						want = append(want, "MODIFIED mine@"+strconv.Itoa(version))
					}
					for _, line := range want {
						require.Equal(t, line, <-lines)
					}
				}
			})
		})
	}
}

// TestASlowWatcherIsCutForItsOwnChanges: what is kept for the slow is bounded by the window's count
// and by its bytes, and is given back.
func TestASlowWatcherIsCutForItsOwnChanges(t *testing.T) {
	for name, bound := range map[string]watchcache.Option{
		"events": watchcache.WithWindow(300), "bytes": watchcache.WithWindowBytes(1 << 20),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCache(t, bound)
				require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
				ctx, stop := context.WithCancel(t.Context())
				lines := follows(ctx, c, metav1.ListOptions{ResourceVersion: "1", FieldSelector: "spec.nodeName=n1"})
				synctest.Wait()
				for version := 2; version < 2000; version++ {
					require.NoError(t, c.Update(mine(version)))
				}
				got := 0
				for line := range lines {
					if line == "410" {
						break
					}
					got++
				}
				require.Less(t, got, 1000)
				stop()
				synctest.Wait()
				held := watchcache.HeldBy(c)
				require.Zero(t, held.Triggers+held.Members+held.Backlogged+int(held.Kept), "%+v", held)
			})
		})
	}
}

// counting describes pods with a field that counts how often it is looked at.
func counting(looks *atomic.Int64) watchcache.Kind[*corev1.Pod] {
	pods := watchcache.Pods()
	pods.Fields = []watchcache.Field[*corev1.Pod]{{Label: "node", Indexed: true, Value: func(p *corev1.Pod) string {
		looks.Add(1)
		return p.Spec.NodeName
	}}}
	return pods
}

// TestAWriteCostsNothingForTheWatchersOfOtherValues counts how often an object's field is looked at
// in a write: a number that does not grow with the watchers that ask for another value.
func TestAWriteCostsNothingForTheWatchersOfOtherValues(t *testing.T) {
	const others, writes = 500, 50
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		c, err := watchcache.NewCache(counting(&looks))
		require.NoError(t, err)
		here := stored("a", 1)
		onNode("n2")(here)
		require.NoError(t, c.Replace(store.Items(here), store.At("1")))
		follows(t.Context(), c, metav1.ListOptions{ResourceVersion: "1", FieldSelector: "node=n1"})
		write := func(from int) int64 {
			synctest.Wait()
			looks.Store(0)
			for i := range writes {
				p := stored("a", from+i)
				onNode("n2")(p)
				require.NoError(t, c.Update(p))
				synctest.Wait()
			}
			return looks.Load()
		}
		alone := write(2)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for i := range others {
			version := strconv.Itoa(1 + writes)
			follows(ctx, c, metav1.ListOptions{ResourceVersion: version, FieldSelector: fmt.Sprintf("node=other-%d", i)})
		}
		require.Equal(t, alone, write(2+writes), "looks at the field in %d writes", writes)
	})
}

// TestWatchersOfSeveralValuesWaitByTheRarest: a change that has only the common one does not wake
// them.
func TestWatchersOfSeveralValuesWaitByTheRarest(t *testing.T) {
	const watchers = 100
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		c, err := watchcache.NewCache(counting(&looks))
		require.NoError(t, err)
		var pods []*corev1.Pod
		for i := range 100 {
			p := stored(fmt.Sprint("p", i), 1)
			onNode("common")(p)
			if i > 0 {
				labelled("app", fmt.Sprint(i))(p)
			}
			pods = append(pods, p)
		}
		require.NoError(t, c.Replace(store.Items(pods...), store.At("1")))
		for range watchers {
			follows(t.Context(), c, metav1.ListOptions{ResourceVersion: "1", FieldSelector: "node=common", LabelSelector: "app=1"})
		}
		synctest.Wait()
		looks.Store(0)
		next := pods[0].DeepCopy()
		next.ResourceVersion = "2"
		require.NoError(t, c.Update(next))
		synctest.Wait()
		require.Less(t, looks.Load(), int64(watchers))
	})
}

// TestWatchersLeaveNothingBehind: of 2,000 watchers of every selection that come and go, whether
// they end or are left, the cache keeps nothing.
func TestWatchersLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, watchcache.WithWindow(64))
		require.NoError(t, c.Replace(store.Items(mine(1)), store.At("1")))
		version := 1
		for range 2000 / (2 * len(mySelections)) {
			ctx, stop := context.WithCancel(t.Context())
			for _, options := range mySelections {
				options.ResourceVersion, options.AllowWatchBookmarks = strconv.Itoa(version), true
				follows(ctx, c, options)
				options.TimeoutSeconds = ptr.To[int64](1)
				follows(t.Context(), c, options)
			}
			synctest.Wait()
			version++
			require.NoError(t, c.Bookmark(strconv.Itoa(version)))
			stop()
		}
		time.Sleep(2 * time.Second) // of the simulated clock
		synctest.Wait()
		held := watchcache.HeldBy(c)
		require.Zero(t, held.Triggers+held.Members+held.Backlogged+int(held.Kept), "%+v", held)
	})
}
