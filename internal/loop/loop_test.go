package loop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/util/workqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNeitherLaneStarves: changes that come quicker than they are handled, as from calls that ask
// to be called again, leave every fifth call to the initial keys; and initial keys without end
// leave the others to changes.
func TestNeitherLaneStarves(t *testing.T) {
	l := newLanes[string]()
	const initial = 100
	for i := range initial {
		l.Push(fmt.Sprint("initial ", i))
	}
	left := initial
	var order []string
	for turn := 0; left > 0; turn++ {
		require.Less(t, turn, share*initial, "the initial keys starve")
		for i := range 2 {
			key := fmt.Sprint("change ", turn, " ", i)
			l.urge(key)
			l.Push(key)
		}
		if key := l.Pop(); key[0] == 'i' {
			order = append(order, key)
			left--
		}
	}
	require.Equal(t, "initial 0", order[0])
	require.Equal(t, "initial 99", order[initial-1], "first in, first out")

	l = newLanes[string]()
	for i := range 1000 {
		l.Push(fmt.Sprint("initial ", i))
	}
	urgent := 0
	for turn := range 500 {
		l.urge("change")
		l.Push("change")
		for popped := 0; popped < 2; popped++ {
			if l.Pop() == "change" {
				urgent++
				break
			}
			require.Zero(t, popped, "turn %d: a change waits for one initial key at most", turn)
		}
	}
	require.Equal(t, 500, urgent)
}

// TestStarvation is a property of random runs: whatever is added, each key is taken before share
// times the keys that were there in front of it, and each urgent key before the patient ones that
// are no fifth turn.
func TestStarvation(t *testing.T) {
	for range 200 {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		l := newLanes[int]()
		due := map[int]int{} // by key, the turn by which it must be taken
		isUrgent := map[int]bool{}
		turn := 0
		for range 2000 {
			key := random.IntN(300)
			_, waits := due[key]
			if random.IntN(3) > 0 {
				l.urge(key)
			}
			all := l.depth()
			patients, urgents := all[patient].keys, all[urgent].keys
			urgent := l.urgent[key] // also of a key that has failed
			bound := turn + share*(patients+1)
			if urgent {
				bound = turn + (urgents+1)*share/(share-1) + 2
			}
			switch {
			case !waits:
				l.Push(key)
				due[key] = bound
			default:
				moves := urgent && !isUrgent[key]
				l.Touch(key)
				if moves { // to the end of the other lane
					due[key] = bound
				}
			}
			isUrgent[key] = isUrgent[key] || urgent
			if random.IntN(4) > 0 {
				taken := l.Pop()
				turn++
				require.LessOrEqual(t, turn, due[taken], "seed %d: key %d", seed, taken)
				delete(due, taken)
				delete(isUrgent, taken)
				l.settle(taken, random.IntN(2) == 0)
			}
			require.Len(t, due, l.Len(), "seed %d", seed)
		}
		for l.Len() > 0 {
			taken := l.Pop()
			turn++
			require.LessOrEqual(t, turn, due[taken], "seed %d: key %d", seed, taken)
			delete(due, taken)
		}
		require.Empty(t, due, "seed %d", seed)
	}
}

func caller(workers int, call func(context.Context, string) error) Caller[string] {
	return Caller[string]{Call: call, Workers: workers, Log: logr.Discard(),
		Backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute)}
}

// TestAFailedKeyKeepsItsLane: a change that failed is tried again before the initial keys, and an
// initial key that failed is not.
func TestAFailedKeyKeepsItsLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New[string]("")
		var order []string
		failed := map[string]bool{}
		l.Add(false, "initial")
		l.Add(true, "change")
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.Run(t.Context(), caller(1, func(_ context.Context, key string) error {
				if (key == "initial" || key == "change") && !failed[key] {
					failed[key] = true
					return errors.New("not now")
				}
				order = append(order, key)
				time.Sleep(1500 * time.Millisecond)
				return nil
			}))
		}()
		synctest.Wait()
		l.Add(false, "a", "b", "c")
		time.Sleep(time.Minute)
		l.Stop()
		<-done
		require.Equal(t, []string{"a", "change", "b", "c", "initial"}, order)
	})
}

// TestAKeyIsInOneCall: a key that changes while it is being called is called once more afterwards.
func TestAKeyIsInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New[string]("")
		var mu sync.Mutex
		inside, calls := map[string]bool{}, map[string]int{}
		most := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			l.Run(t.Context(), caller(3, func(_ context.Context, key string) error {
				mu.Lock()
				require.False(t, inside[key])
				inside[key] = true
				calls[key]++
				most = max(most, len(inside))
				mu.Unlock()
				time.Sleep(10 * time.Second)
				mu.Lock()
				delete(inside, key)
				mu.Unlock()
				return nil
			}))
		}()
		keys := []string{"a", "b", "c", "d"}
		l.Add(true, keys...)
		time.Sleep(time.Second)
		require.Equal(t, 3, l.Counts().Running)
		require.Equal(t, 1, l.Counts().Urgent)
		require.Equal(t, time.Second, l.Counts().OldestUrgent)
		l.Add(true, slices.Repeat(keys, 5)...)
		time.Sleep(time.Minute)
		l.Stop()
		<-done
		require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 2, "d": 1}, calls)
		require.Equal(t, 3, most)
	})
}
