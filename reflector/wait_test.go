package reflector_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

var errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no role"))

// TestWaitSyncedEndsWithRun: who waits does not wait for a Run that has failed or ended, or that
// nobody calls.
func TestWaitSyncedEndsWithRun(t *testing.T) {
	newOne := func(options ...reflector.Option) *reflector.Reflector[*corev1.Pod] {
		return reflector.New[*corev1.Pod](forever{err: errForbidden}, store.NewIndexer[*corev1.Pod](), options...)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newOne(reflector.WithFinalErrors())
		ran := make(chan error)
		go func() { ran <- r.Run(t.Context()) }()
		err := r.WaitSynced(t.Context())
		failed := <-ran
		require.ErrorIs(t, err, failed)
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorIs(t, r.WaitSynced(t.Context()), failed, "also afterwards")
		require.Equal(t, began, time.Now())

		r = newOne(reflector.WithLiveness(-1))
		require.ErrorContains(t, r.Run(t.Context()), "WithLiveness(-1ns)")
		require.ErrorContains(t, r.WaitSynced(t.Context()), "WithLiveness(-1ns)")

		r = newOne()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, r.Run(ctx))
		require.EqualError(t, r.WaitSynced(t.Context()), "reflector: not synced: Run has ended")

		r = newOne()
		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = r.WaitSynced(ctx)
		require.EqualError(t, err, "reflector: not synced: nobody has called Run: context deadline exceeded")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestWaitSyncedAfterAGoodRunIsGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := reflector.New(forever{n: 1}, store.NewIndexer[*corev1.Pod]())
		require.NoError(t, r.Run(ctx))
		for range 100 { // of several reasons to end, being synced is the first
			require.NoError(t, r.WaitSynced(ctx))
		}
	})
}

func TestNilIsNamed(t *testing.T) {
	var none *listwatch.ListWatch[*corev1.Pod]
	for want, r := range map[string]*reflector.Reflector[*corev1.Pod]{
		"reflector: New: the source is nil": reflector.New[*corev1.Pod](nil, store.NewIndexer[*corev1.Pod]()),
		"reflector: New: the store is nil":  reflector.New[*corev1.Pod](forever{}, nil),
	} {
		require.EqualError(t, r.Run(t.Context()), want)
		require.ErrorContains(t, r.WaitSynced(t.Context()), want)
	}
	r := reflector.New[*corev1.Pod](none, store.NewIndexer[*corev1.Pod]())
	require.EqualError(t, r.Run(t.Context()), "reflector: New: the source is nil")
	r = reflector.New[*corev1.Pod](forever{}, (*store.Indexer[*corev1.Pod])(nil))
	require.EqualError(t, r.Run(t.Context()), "reflector: New: the store is nil")
}
