// Package collector finds what waits for a garbage collection to end. It is for tests.
package collector

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/internal/race"
)

// Alone runs the test again in a process of its own, in which a loop without a call cannot be
// preempted, and reports whether this is that process. It skips a test that looks for races, whose
// times say nothing.
func Alone(t *testing.T) bool {
	t.Helper()
	if race.Enabled {
		t.Skip("it is a test of time, and without a race")
	}
	if strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1") {
		return true
	}
	again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	again.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	out, err := again.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	return false
}

// Stall calls once, again and again, while a collection is held open in its last step, before it
// stops the world: one goroutine is in a loop that cannot be preempted, so that its processor does
// not come to the barrier. From there on, the runtime parks whoever reads a weak pointer. It
// returns the least of three rounds' slowest calls, and how long each round was. Times are real, as
// the collector is.
func Stall(t *testing.T, once func()) (worst, hold time.Duration) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	heap := heapOf(1 << 18)
	runtime.GC()
	start := time.Now()
	runtime.GC()
	marking := time.Since(start)
	hold = 2*marking + 200*time.Millisecond
	start = time.Now()
	spin(sample, new(atomic.Bool))
	most := int64(float64(sample) * float64(3*hold) / float64(time.Since(start)))
	for range 3 {
		collected := make(chan struct{})
		var over atomic.Bool
		go func() { runtime.GC(); close(collected) }()
		time.Sleep(marking / 4) // the stacks are scanned, the heap is not
		// If the collection has come to its end before the loop begins, it has stopped the world,
		// and waits for the loop: nobody else could end it.
		go spin(most, &over)
		end := time.Now().Add(hold)
		time.AfterFunc(hold, func() { over.Store(true) })
		slowest := time.Duration(0)
		for time.Now().Before(end) {
			start := time.Now()
			once()
			slowest = max(slowest, time.Since(start))
			time.Sleep(2 * time.Millisecond)
		}
		<-collected
		t.Logf("marking takes %v, the slowest of the calls %v", marking, slowest)
		if worst == 0 || slowest < worst {
			worst = slowest
		}
	}
	runtime.KeepAlive(heap)
	return worst, hold
}

// sample is for how many turns the speed of a loop is measured.
const sample = 10_000_000

// spin turns so often, or until it is over. It has no call in it, and so no point to preempt it.
//
//go:noinline
func spin(most int64, over *atomic.Bool) {
	for ; most > 0 && !over.Load(); most-- {
	}
}

type link struct {
	next *link
	_    [7]*link // as far apart as objects are
}

// heapOf is a list of so many links in no order, which takes a collector long to follow.
func heapOf(links int) *link {
	all := make([]*link, links)
	for i := range all {
		all[i] = &link{}
	}
	rand.Shuffle(links, func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range links - 1 {
		all[i].next = all[i+1]
	}
	return all[0]
}
