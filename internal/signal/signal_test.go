package signal_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/internal/signal"
)

func TestBroadcastWakesAllWhoWaitAndNobodyLater(t *testing.T) {
	var s signal.Signal
	s.Broadcast() // to nobody
	var woken sync.WaitGroup
	for range 10 {
		before := s.Wait()
		woken.Go(func() { <-before })
	}
	s.Broadcast()
	woken.Wait()
	select {
	case <-s.Wait():
		t.Fatal("woken by a broadcast of before")
	default:
	}
	require.Equal(t, s.Wait(), s.Wait(), "one channel for all until the next broadcast")
}

// TestNoWakeUpIsLost: a goroutine that takes the channel before it looks is woken by each change
// that it has not seen.
func TestNoWakeUpIsLost(t *testing.T) {
	const changes = 20_000
	var s signal.Signal
	var state atomic.Int64
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() {
			for {
				changed := s.Wait()
				if state.Load() == changes {
					return
				}
				<-changed
			}
		})
	}
	var writing sync.WaitGroup
	for range 2 {
		writing.Go(func() {
			for range changes / 2 {
				state.Add(1)
				s.Broadcast()
			}
		})
	}
	writing.Wait()
	waiting.Wait()
}
