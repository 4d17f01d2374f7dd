package informer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// refused is a source whose requests are forbidden.
func refused() *listwatch.ListWatch[*corev1.Pod] {
	err := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no role"))
	return listwatch.FromFuncs[*corev1.Pod](
		func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, err },
		func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, err },
		listwatch.WithoutWatchList())
}

var final = informer.WithReflector(reflector.WithFinalErrors())

// TestWhoWaitsIsToldHowRunFailed: every WaitSynced fails at once with Run's error: that of an
// informer, a handler, a union and a member.
func TestWhoWaitsIsToldHowRunFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		i := informer.New[*corev1.Pod](refused(), final)
		h := add(t, i, func(podEvent) {})
		ran := make(chan error, 1)
		go func() { ran <- i.Run(t.Context()) }()
		for _, err := range []error{i.WaitSynced(t.Context()), h.WaitSynced(t.Context())} {
			require.True(t, apierrors.IsForbidden(err), "%v", err)
		}
		err := <-ran
		require.True(t, apierrors.IsForbidden(err))
		require.ErrorIs(t, i.WaitSynced(t.Context()), err)
		require.ErrorIs(t, h.WaitSynced(t.Context()), err)
		require.ErrorIs(t, h.WaitSynced(t.Context()), informer.ErrStopped)

		u := informer.NewUnion[*corev1.Pod](final)
		_, err = u.Add("slow", newServer("a"))
		require.NoError(t, err)
		m, err := u.Add("refused", refused())
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ran <- u.Run(ctx) }()
		for _, err := range []error{u.WaitSynced(t.Context()), m.WaitSynced(t.Context())} {
			require.True(t, apierrors.IsForbidden(err), "%v", err)
			require.ErrorContains(t, err, `member "refused"`)
		}
		require.Equal(t, began, time.Now())
		cancel()
		require.NoError(t, <-ran)
	})
}

// TestWhoWaitsIsToldOfAPanic: one handler's panic ends Run before the other handlers are synced.
func TestWhoWaitsIsToldOfAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := informer.New[*corev1.Pod](newServer("a"))
		add(t, i, func(podEvent) { panic("oh") }, informer.WithName("bad"))
		other := add(t, i, func(podEvent) { <-i.Done() })
		ran := make(chan error, 1)
		go func() { ran <- i.Run(t.Context()) }()
		err := other.WaitSynced(t.Context())
		var panicked *informer.PanicError
		require.ErrorAs(t, <-ran, &panicked)
		if err != nil { // halted before the function of its first event had returned
			require.ErrorIs(t, err, panicked)
			require.ErrorIs(t, err, informer.ErrStopped)
		}
	})
}

// TestWhoWaitsIsToldTheCause: if ctx ends before a list is permitted, every WaitSynced has the
// reflector's cause: that of an informer, a lease, a set, a union, a member and a handler of each.
// Of a handler that is itself at work, it says that.
func TestWhoWaitsIsToldTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		pods := newPods(t, "a")
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no role"))
		pods.Fail(listwatchtest.List, forbidden, listwatchtest.UntilLifted())
		i := informer.New[*corev1.Pod](pods.ListerWatcher())
		h := add(t, i, func(podEvent) {}, informer.WithName("mine"))
		set := informer.NewSet(pods.Server().Config())
		lease := acquire(t, set)
		leased, err := lease.AddHandler(func(podEvent) {}, informer.WithName("mine"))
		require.NoError(t, err)
		u := informer.NewUnion[*corev1.Pod]()
		m, err := u.Add("refused", pods.ListerWatcher())
		require.NoError(t, err)
		var ended sync.WaitGroup
		for _, run := range []func(context.Context) error{i.Run, set.Run, u.Run} {
			ended.Go(func() { require.NoError(t, run(ctx)) })
		}
		soon, stop := context.WithTimeout(ctx, 20*time.Second)
		defer stop()
		for name, wait := range map[string]func(context.Context) error{
			"informer": i.WaitSynced, "handler": h.WaitSynced, "lease": lease.WaitSynced, "handler of a lease": leased.WaitSynced,
			"set": set.WaitSynced, "union": u.WaitSynced, "member": m.WaitSynced,
		} {
			err := wait(soon)
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.True(t, apierrors.IsForbidden(err), "%s: %v", name, err)
			require.ErrorContains(t, err, "no role", name)
			require.ErrorContains(t, err, " attempts since ", name)
		}
		require.ErrorContains(t, h.WaitSynced(soon), "informer: mine: ")

		_, err = u.Add("well", newServer("a"))
		require.NoError(t, err)
		synctest.Wait()
		release := make(chan struct{})
		slow, err := u.AddHandler(func(podEvent) { <-release }, informer.WithName("slow"))
		require.NoError(t, err)
		require.EqualError(t, slow.WaitSynced(soon),
			"informer: slow: not synced: it has not returned from its initial list: context deadline exceeded")
		close(release)
		synctest.Wait()
		for range 20 { // select picks at random
			require.NoError(t, slow.WaitSynced(soon), "it is synced, if late")
		}
		cancel()
		ended.Wait()
	})
}

func TestWhoWaitsIsToldOfBadOptions(t *testing.T) {
	var none *store.Index[*corev1.Pod, string]
	for want, i := range map[string]*informer.Informer[*corev1.Pod]{
		"WithRing(0)":                 informer.New[*corev1.Pod](newServer(), informer.WithRing(0)),
		"WithLiveness(0s)":            informer.New[*corev1.Pod](newServer(), informer.WithReflector(reflector.WithLiveness(0))),
		"informer: the source is nil": informer.New[*corev1.Pod]((*listwatch.ListWatch[*corev1.Pod])(nil)),
		"WithIndexes: index 1 is nil": informer.New[*corev1.Pod](newServer(), informer.WithIndexes[*corev1.Pod](none)),
	} {
		h := add(t, i, func(podEvent) {})
		require.ErrorContains(t, i.Run(t.Context()), want)
		require.ErrorContains(t, i.WaitSynced(t.Context()), want)
		require.ErrorContains(t, h.WaitSynced(t.Context()), want)
		<-i.Done()
	}
	u := informer.NewUnion[*corev1.Pod](informer.WithReflector(reflector.WithLiveness(0)))
	require.ErrorContains(t, u.Run(t.Context()), "WithLiveness(0s)")
	require.ErrorContains(t, u.WaitSynced(t.Context()), "WithLiveness(0s)")
	_, err := u.Add("none", (*listwatch.ListWatch[*corev1.Pod])(nil))
	require.EqualError(t, err, `informer: add member "none": the source is nil`)
}

// TestWhoWaitsIsToldThatNobodyRuns: if ctx ends, WaitSynced says that Run was not called.
func TestWhoWaitsIsToldThatNobodyRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		i := informer.New[*corev1.Pod](newServer("a"))
		h := add(t, i, func(podEvent) {})
		u := informer.NewUnion[*corev1.Pod]()
		m, err := u.Add("one", newServer("a"))
		require.NoError(t, err)
		lease := acquire(t, informer.NewSet(newPods(t, "a").Server().Config()))
		for want, wait := range map[string]func(context.Context) error{
			"informer: not synced: nobody has called Run: context deadline exceeded":                          i.WaitSynced,
			"informer: handler-1: not synced: nobody has called Run: context deadline exceeded":               h.WaitSynced,
			"informer: not synced: nobody has called Run: context deadline exceeded ":                         u.WaitSynced,
			`informer: member "one": reflector: not synced: nobody has called Run: context deadline exceeded`: m.WaitSynced,
			"informer: not synced: nobody has called Run of the set: context deadline exceeded":               lease.WaitSynced,
		} {
			err := wait(ctx)
			require.EqualError(t, err, strings.TrimSpace(want))
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		lease.Close()
		require.ErrorContains(t, lease.WaitSynced(t.Context()), "the lease is closed")
	})
}
