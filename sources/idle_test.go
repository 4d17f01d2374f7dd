package sources

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/store"
)

// instant is a source of one empty state.
type instant struct{ handed }

func (s *instant) Run(ctx context.Context, sink *Sink) error {
	s.sink = sink
	sink.Set(Pods{})
	<-ctx.Done()
	return nil
}

// An update costs nothing of the sources that have none: here the lock of an idle one is not even
// to be had.
func TestIdleSourcesAreNotLookedAt(t *testing.T) {
	busy := &instant{handed{name: "busy"}}
	s := New("node-1", Custom(&instant{handed{name: "idle"}}), Custom(busy))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for range 2 {
		<-s.Updates()
	}
	<-s.Synced()
	idle := s.list()[0]
	idle.mu.Lock()
	for _, image := range []string{"v1", "v2"} {
		var all store.Indexer[*corev1.Pod]
		require.NoError(t, all.Add(podNamed("a", image)))
		busy.sink.Set(all.Snapshot())
		select {
		case update := <-s.Updates():
			require.Equal(t, "busy", update.Source)
		case <-time.After(5 * time.Second):
			idle.mu.Unlock()
			require.FailNow(t, "an idle source is looked at")
		}
	}
	idle.mu.Unlock()
	cancel()
	require.NoError(t, <-done)
}
