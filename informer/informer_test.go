package informer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

func TestRunTwice(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	i := informer.New[*corev1.Pod](newServer())
	require.NoError(t, i.Run(ctx))
	require.ErrorContains(t, i.Run(ctx), "called twice")
}

func TestBadOptionsNameThemselves(t *testing.T) {
	for want, option := range map[string]informer.Option{
		"WithRing(0)":           informer.WithRing(0),
		"WithVerification(-1s)": informer.WithVerification(-time.Second, nil),
		"WithLiveness(0s)":      informer.WithReflector(reflector.WithLiveness(0)),
		"WithIndexes": informer.WithIndexes(store.NewIndex("name", func(n *corev1.Node) []string {
			return []string{n.Name}
		})),
	} {
		require.ErrorContains(t, informer.New[*corev1.Pod](newServer(), option).Run(t.Context()), want)
	}
}

func TestIndexesAndHealthPassThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		byName := store.NewIndex("name", func(p *corev1.Pod) []string { return []string{p.Name} })
		i := informer.New[*corev1.Pod](newServer("a", "b"), informer.WithIndexes(byName))
		require.Error(t, i.Ready(time.Minute))
		start(t, i)
		<-i.Synced()
		require.Equal(t, 1, byName.Len(i.Snapshot(), "a"))
		require.NoError(t, i.Ready(time.Minute))
		require.True(t, i.Status().Synced)
	})
}

// TestUnknownIndexNamesItself: a query of an index that the informer does not keep panics with the
// index's name. In a handler, the panic ends Run.
func TestUnknownIndexNamesItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		byNode := store.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
		i := informer.New[*corev1.Pod](newServer("a"))
		add(t, i, func(podEvent) { byNode.Len(i.Snapshot(), "n1") }, informer.WithName("mine"))
		err := i.Run(t.Context())
		var p *informer.PanicError
		require.ErrorAs(t, err, &p)
		require.ErrorContains(t, err, `"mine" panicked`)
		require.ErrorContains(t, err, `index "node"`)
	})
}
