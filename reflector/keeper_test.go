package reflector_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// TestTwoReflectorsOfOneStore: each would undo the other's lists. So the second Run fails, names
// the alternative, and leaves the first one's copy alone. Once the first has ended, the store is
// free.
func TestTwoReflectorsOfOneStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := store.NewIndexer[*corev1.Pod]()
		first := reflector.New[*corev1.Pod](forever{n: 2}, pods)
		second := reflector.New[*corev1.Pod](forever{n: 1}, pods)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- first.Run(ctx) }()
		require.NoError(t, first.WaitSynced(ctx))

		err := second.Run(ctx)
		require.EqualError(t, err, "reflector: another reflector keeps this store: "+
			"give each its own, or join several collections by informer.NewUnion")
		require.ErrorIs(t, second.WaitSynced(ctx), err)
		require.ErrorIs(t, second.Ready(time.Hour), err)
		require.Equal(t, reflector.Ended, second.Status().Verdict(time.Hour).Class)
		require.NoError(t, first.Ready(time.Minute))
		require.Equal(t, 2, pods.Snapshot().Len())

		other := reflector.New[*corev1.Pod](forever{n: 1}, store.NewIndexer[*corev1.Pod]())
		go other.Run(ctx)
		require.NoError(t, other.WaitSynced(ctx), "another store is not taken")

		stop()
		require.NoError(t, <-ended)
		again, stop := context.WithCancel(t.Context())
		third := reflector.New[*corev1.Pod](forever{n: 1}, pods)
		go func() { ended <- third.Run(again) }()
		require.NoError(t, third.WaitSynced(again))
		require.Equal(t, 1, pods.Snapshot().Len())
		stop()
		require.NoError(t, <-ended)
	})
}
