package lookup

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/pace"
)

// line is a server in simulated time: each request for it takes a while, and then is answered or
// fails.
type line struct {
	*testing.T
	turns    turns
	random   *rand.Rand
	now      time.Time
	away     map[string]bool     // resources
	bad      map[types.UID]bool  // objects
	underWay map[*turn]time.Time // and its end
}

var lineResources = []string{"replicasets", "jobs"}

func (l *line) add(i int) {
	l.turns.add(owned{
		resource: schema.GroupVersionResource{Resource: lineResources[i%2]}, uid: types.UID(fmt.Sprint(i)),
		newest: time.Unix(l.random.Int64N(100), 0),
	})
}

// step begins all requests that are due, and ends those that are over.
func (l *line) step(by time.Duration) {
	for {
		next, wait := l.turns.next(l.now)
		if next == nil {
			require.Positive(l, wait)
			break
		}
		l.check(next)
		l.underWay[next] = l.now.Add(time.Duration(l.random.IntN(50)+1) * time.Millisecond)
	}
	l.now = l.now.Add(by)
	for one, end := range l.underWay {
		if end.After(l.now) {
			continue
		}
		delete(l.underWay, one)
		if resource := one.object.resource.Resource; l.away[resource] || l.bad[one.object.uid] {
			l.turns.failed(one, l.now, errors.New("away"), pace.Failed, 0)
		} else {
			l.turns.answered(one, known)
		}
	}
}

// check: next is the newest object that waits and is due, and its resource does not have too many.
func (l *line) check(next *turn) {
	of, n := l.turns.resource(next.object), 0
	for one := range l.underWay {
		if l.turns.resource(one.object) == of {
			n++
		}
	}
	require.Less(l, n, ownersAtOnce)
	if !of.answered {
		require.Zero(l, n, "one request shows whether it is answered")
	}
	for _, other := range l.turns.objects {
		same := l.turns.resource(other.object) == of
		if same && other.state == waiting && !other.due.After(l.now) && other.probed == next.probed {
			require.False(l, other.object.newest.After(next.object.newest))
		}
	}
}

// TestTurns: whatever is away for how long, all objects but the bad ones are known 40 seconds after
// the return of the server. A bad one holds up the others for one more probe at most.
func TestTurns(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for range 50 {
		l := &line{
			T: t, turns: newTurns(), random: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1000, 0),
			away: map[string]bool{}, bad: map[types.UID]bool{}, underWay: map[*turn]time.Time{},
		}
		seed++
		for i := range 30 {
			switch l.add(i); l.random.IntN(8) {
			case 0:
				l.bad[types.UID(fmt.Sprint(i))] = true
			case 1:
				delete(l.turns.objects, types.UID(fmt.Sprint(l.random.IntN(i+1))))
			case 2:
				l.away[lineResources[l.random.IntN(2)]] = l.random.IntN(2) == 0
			}
			for range l.random.IntN(30) {
				l.step(time.Duration(l.random.IntN(1000)) * time.Millisecond)
			}
		}
		clear(l.away)
		for end := l.now.Add(time.Duration(1+len(l.bad)) * 40 * time.Second); l.now.Before(end); {
			l.step(20 * time.Millisecond)
		}
		for uid, one := range l.turns.objects {
			require.Equal(t, !l.bad[uid], one.state == known, "seed %d: %+v", seed-1, one)
		}
	}
}
