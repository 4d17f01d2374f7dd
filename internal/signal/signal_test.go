package signal_test

import (
	"sync"
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
