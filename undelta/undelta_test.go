package undelta_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/storetest"
	"github.com/tributary-go/tributary/undelta"
)

var pod = storetest.Pod

type pods = store.Snapshot[*corev1.Pod]

func show(s pods) string {
	var names []string
	for _, p := range s.Sorted() {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ") + " at " + s.ResourceVersion()
}

func TestConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Rig {
		var last pods
		s := undelta.New(func(now pods) { last = now })
		return storetest.Rig{Store: s, Objects: func() []*corev1.Pod {
			require.Equal(t, s.Snapshot().Sorted(), last.Sorted(), "the last push is what the store holds")
			return last.Sorted()
		}}
	})
}

func TestOnePushPerChange(t *testing.T) {
	var pushed []string
	s := undelta.New(func(now pods) { pushed = append(pushed, show(now)) })
	require.NoError(t, s.Replace(store.Items(pod("a", 1), pod("b", 2)), store.At("3")))
	require.NoError(t, s.Add(pod("c", 4)))
	require.NoError(t, s.Update(pod("a", 5)))
	require.NoError(t, s.Bookmark("6"))
	require.NoError(t, s.Delete(pod("b", 7)))
	require.NoError(t, s.Delete(pod("never", 8)))
	require.NoError(t, s.Resync())
	require.Error(t, s.Add(&corev1.Pod{}))
	require.Error(t, s.Replace(store.Items(pod("x", 9), nil), store.At("9")))
	require.Equal(t, []string{"a b at 3", "a b c at 4", "a b c at 5", "a c at 7", "a c at 8", "a c at 8"}, pushed)
}

// TestPushesKeepTheOrderOfChanges: with many writers, each push is one change further than the one
// before, and the last one is the state.
func TestPushesKeepTheOrderOfChanges(t *testing.T) {
	const writers, writes = 8, 200
	var pushed []pods
	s := undelta.New(func(now pods) { pushed = append(pushed, now) })
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range writes {
				_ = s.Add(pod(fmt.Sprintf("w%d-%d", w, i), 0))
			}
		})
	}
	all.Wait()
	require.Len(t, pushed, writers*writes)
	for i, now := range pushed {
		require.Equal(t, i+1, now.Len())
	}
	require.Equal(t, show(s.Snapshot()), show(pushed[len(pushed)-1]))
}

func TestReadersDoNotWaitForAPush(t *testing.T) {
	inPush, goOn := make(chan struct{}), make(chan struct{})
	s := undelta.New(func(pods) { close(inPush); <-goOn })
	done := make(chan error)
	go func() { done <- s.Add(pod("a", 1)) }()
	<-inPush
	require.Equal(t, "a at 1", show(s.Snapshot()))
	close(goOn)
	require.NoError(t, <-done)
}

func TestIndexesArePushed(t *testing.T) {
	byName := store.NewIndex("name", func(p *corev1.Pod) []string { return []string{p.Name} })
	var found []string
	s := undelta.New(func(now pods) {
		for p := range byName.Objects(now, "a") {
			found = append(found, p.ResourceVersion)
		}
	}, byName)
	require.NoError(t, s.Add(pod("a", 1)))
	require.NoError(t, s.Update(pod("a", 2)))
	require.True(t, slices.Equal([]string{"1", "2"}, found))
}

func TestWithoutAFunction(t *testing.T) {
	require.PanicsWithValue(t, "undelta: New: the function that is to be pushed to is nil", func() { undelta.New[*corev1.Pod](nil) })
}

// TestOneReflectorPerStore: two reflectors would push each other's lists in turn. The second one is
// refused, and pushes nothing.
func TestOneReflectorPerStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pushed []string
		s := undelta.New(func(now pods) { pushed = append(pushed, show(now)) })
		source := func(names ...string) *reflector.Reflector[*corev1.Pod] {
			own := listwatchtest.New(t, listwatchtest.Pods())
			for _, name := range names {
				own.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
			}
			return reflector.New(own.ListerWatcher(), s)
		}
		first, second := source("a", "b"), source("c")
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ended := make(chan error, 1)
		go func() { ended <- first.Run(ctx) }()
		require.NoError(t, first.WaitSynced(ctx))
		require.ErrorContains(t, second.Run(ctx), "another reflector keeps this store")
		require.ErrorContains(t, second.Ready(time.Hour), "another reflector keeps this store")
		require.Equal(t, []string{"a b at 3"}, pushed)
		require.NoError(t, first.Ready(time.Minute))
		stop()
		require.NoError(t, <-ended)
	})
}
