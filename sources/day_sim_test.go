package sources_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/store"
)

// TestSimulationOfAnAgent: pods come and go while the way to the API server is cut, slow or well,
// and while the server is restored from backups, behind and past what the agent knows; the way may
// be silent, and the reader asleep. While SafeToPrune is true, the agent has been told each pod
// that its source has, that the server had when the way was last interrupted, and that the server
// has had for the longest staleness.
//
// TRIBUTARY_SIM_SEED=n replays one seed; TRIBUTARY_SIM_RUNS=n sets how many are run.
func TestSimulationOfAnAgent(t *testing.T) {
	total := &agentTally{}
	if seed, err := strconv.ParseUint(os.Getenv("TRIBUTARY_SIM_SEED"), 10, 64); err == nil {
		synctest.Test(t, func(t *testing.T) { simulateAgent(t, seed, total) })
		return
	}
	runs := 12
	if n, err := strconv.Atoi(os.Getenv("TRIBUTARY_SIM_RUNS")); err == nil {
		runs = n
	}
	for i := range runs {
		seed := rand.Uint64()
		if i%2 == 0 {
			seed = uint64(i)
		}
		synctest.Test(t, func(t *testing.T) { simulateAgent(t, seed, total) })
		if t.Failed() {
			t.Fatalf("replay it with TRIBUTARY_SIM_SEED=%d", seed)
		}
	}
	t.Logf("%+v", *total)
	require.Positive(t, total.restores)
	require.Greater(t, total.safe, total.looks/20)
	require.Greater(t, total.looks, total.safe)
}

// agentTally counts over all seeds.
type agentTally struct{ looks, safe, restores, outages int }

// longest is how old the proof of a state may be that is safe to prune by, and how long the way to
// the agent takes.
const longest = 4 * time.Minute

type agentWorld struct {
	*agent
	t      *testing.T
	seed   uint64
	random *rand.Rand
	total  *agentTally
	named  int

	bound       map[types.UID]time.Time // when the server that answers got the pod
	interrupted time.Time               // until then, the last time
	backup      store.Snapshot[*corev1.Pod]
}

func simulateAgent(t *testing.T, seed uint64, total *agentTally) {
	w := &agentWorld{
		agent: startAgent(t), t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), total: total, bound: map[types.UID]time.Time{},
	}
	w.bind()
	w.backup = w.pods.Snapshot()
	for range 150 {
		w.step()
		for range 4 {
			time.Sleep(time.Duration(w.random.ExpFloat64() * float64(2*time.Second))) // simulated
			w.look()
		}
	}
	w.away.Store(false)
	w.slow.Store(false)
	time.Sleep(time.Hour)
	w.requireTruth(t)
	require.True(t, w.sources.SafeToPrune(sources.APISource), "seed %d", seed)
	require.NoError(t, w.sources.Ready(longest), "seed %d", seed)
}

func (w *agentWorld) step() {
	switch p := w.random.IntN(100); {
	case p < 40:
		w.bind()
	case p < 55:
		for _, pod := range w.pods.Snapshot().All() {
			_, err := w.pods.Remove(pod.Namespace, pod.Name)
			require.NoError(w.t, err)
			break
		}
	case p < 63:
		w.total.outages++
		w.takeAway()
	case p < 66:
		w.cut()
		w.interrupted = time.Now()
	case p < 76:
		w.slow.Store(w.random.IntN(2) == 0)
	case p < 79:
		w.backup = w.pods.Snapshot()
	case p < 82:
		w.restore()
	case p < 92 && w.away.Load():
		w.away.Store(false)
		w.interrupted = time.Now()
	case p < 94:
		w.hold(&w.silent)
	case p < 96:
		w.hold(&w.asleep)
	}
}

// hold has the way silent, or the reader asleep, for some minutes.
func (w *agentWorld) hold(what *atomic.Bool) {
	what.Store(true)
	defer what.Store(false)
	for range w.random.IntN(20) {
		w.bind()
		time.Sleep(time.Duration(w.random.Int64N(int64(time.Minute)))) // simulated
		w.look()
	}
}

// bind has the server get one pod or some.
func (w *agentWorld) bind() {
	for range 1 + w.random.IntN(4)*w.random.IntN(4) {
		w.named++
		pod, err := w.pods.Create(podOf(fmt.Sprint("p", w.named), "v1", uid(""), onNode("node-1")))
		require.NoError(w.t, err)
		w.bound[pod.UID] = time.Now()
	}
}

// restore replaces the server by one with the content of the backup, which may have been written to
// before the agent comes back.
func (w *agentWorld) restore() {
	w.total.restores++
	backup := store.Version(w.backup.ResourceVersion())
	w.serve(w.t)
	for version := store.Version("1"); version.Before(backup); { // those of the backup
		w.named++
		pod, err := w.pods.Create(podOf(fmt.Sprint("before-", w.named), "v1", uid("")))
		require.NoError(w.t, err)
		version = store.VersionOf(pod)
	}
	require.NoError(w.t, w.pods.Cache().Replace(store.Items(w.backup.Sorted()...), store.At(w.backup.ResourceVersion())))
	w.bound = map[types.UID]time.Time{}
	for _, pod := range w.backup.All() {
		w.bound[pod.UID] = time.Now()
	}
	for range w.random.IntN(2) * w.random.IntN(20) {
		w.bind()
	}
	w.cut()
	w.interrupted = time.Now()
}

// look judges SafeToPrune.
func (w *agentWorld) look() {
	synctest.Wait()
	w.total.looks++
	if !w.sources.SafeToPrune(sources.APISource) {
		return
	}
	w.total.safe++
	require.False(w.t, w.away.Load(), "seed %d: the server is away", w.seed)
	held := w.holding()
	for _, pod := range w.sources.Merged() {
		require.NotNil(w.t, held[pod.Pod.UID], "seed %d: safe to prune, and the reader has not been told", w.seed)
	}
	for _, pod := range w.pods.Snapshot().All() {
		since := w.bound[pod.UID]
		if held[pod.UID] == nil && (!since.After(w.interrupted) || time.Since(since) > longest) {
			w.t.Fatalf("seed %d: safe to prune, and %s is missing, bound %s ago; the way was interrupted until %s ago; %v",
				w.seed, pod.Name, time.Since(since), time.Since(w.interrupted), w.sources.Status()[0].Reflector)
		}
	}
}
