package informer_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/informer"
)

// TestWaitUntil: a condition is asked until it holds, also for an object that is not there.
func TestWaitUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("other")
		i := informer.New(s)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- i.Run(ctx) }()
		synctest.Wait()

		var got *corev1.Pod
		ended := waiting(t, func() (err error) {
			got, err = i.WaitUntil(t.Context(), "ns/a", func(p *corev1.Pod, held bool) bool { return held && p.ResourceVersion >= "3" })
			return err
		})
		require.False(t, ended())
		s.put("a")
		require.False(t, ended())
		s.put("a")
		require.True(t, ended())
		require.Equal(t, "3", got.ResourceVersion)

		gone := func(_ *corev1.Pod, held bool) bool { return !held }
		ended = waiting(t, func() error { _, err := i.WaitUntil(t.Context(), "ns/a", gone); return err })
		require.False(t, ended())
		s.remove("a")
		require.True(t, ended())

		never := func(*corev1.Pod, bool) bool { return false }
		short, stop := context.WithTimeout(t.Context(), 1)
		defer stop()
		_, err := i.WaitUntil(short, "ns/a", never)
		require.EqualError(t, err, `informer: wait until ns/a satisfies a condition: context deadline exceeded: the store is at version "4", without this object`)
		_, err = i.WaitUntil(short, "ns/other", never)
		require.EqualError(t, err, `informer: wait until ns/other satisfies a condition: context deadline exceeded: the store is at version "4"`)
		_, err = i.WaitUntil(t.Context(), "ns/a", nil)
		require.EqualError(t, err, "informer: wait until ns/a: the condition is nil")
		cancel()
		require.NoError(t, <-ran)
		_, err = i.WaitUntil(t.Context(), "ns/a", never)
		require.ErrorIs(t, err, informer.ErrStopped)
	})
}

// TestCaughtUp: a handler has caught up when it has returned from all that a reader can have seen.
func TestCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		i := informer.New(s)
		hold := make(chan struct{}, 100)
		h, err := i.AddHandler(func(podEvent) { <-hold })
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- i.Run(ctx) }()
		step := func() bool { synctest.Wait(); return h.CaughtUp() }
		require.False(t, step(), "in its initial list")
		hold <- struct{}{}
		require.True(t, step())
		s.put("a")
		s.put("b")
		require.False(t, step())
		hold <- struct{}{}
		require.False(t, step())
		hold <- struct{}{}
		require.True(t, step())
		cancel()
		require.NoError(t, <-ran)
	})
}
