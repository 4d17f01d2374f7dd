package informer_test

import (
	"context"
	"errors"
	"strings"
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
