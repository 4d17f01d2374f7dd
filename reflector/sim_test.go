package reflector

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/race"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// regressions are seeds that once found a fault; each stays.
var regressions = []uint64{
	// Found in the first runs, when an object that a list could not decode stayed doubtful for
	// ever, and a source that ended cleanly with its context hid a silent connection.
	16835630518209234942,
	// A server that was restored to an older version before its first bookmark was watched in
	// silence for ever.
	8572210637302224039,
	// The store refused the list that followed an event from the near future. The next event was
	// right to replace that object, and the simulation took it for a step back.
	1193695092971989392,
	// An event of another backend fell between two versions of the stream, where nothing gives it
	// away, and no list followed. It is older than the stream now.
	13811368433594468358,
	// The store refused a list that stood in for a watch, and the next one was throttled for long.
	// The watch went on, and the copy said for ever that it lacked a change.
	10419979360343606242,
}

// resumed are regressions of a copy that was resumed. Those above never are.
var resumed = []uint64{
	// Another history had objects whose metadata is not of its Go type: their pages of metadata
	// compared nothing, and the copy stayed empty, ready.
	3006275987671358334,
	// One refused probe ended the probes of single objects for ever. Another history had an equal
	// first object and as many objects, and was never noticed.
	14222033638985717244,
	// A list broke off after an object that could not be decoded. The watch went on from the state
	// of before, and the copy said for ever that the object could not be used.
	9065847453783271710,
}

// TestSimulation runs the reflector against a model server with a history, faults at any step, and
// checks after every write that the store holds a state that the server had, at the version that it
// says. When the faults end it must converge. Each seed is run with a copy of objects, and with one
// of bytes. TRIBUTARY_SIM_SEED=n replays one seed; TRIBUTARY_SIM_RUNS=n sets how many fresh ones
// are run.
func TestSimulation(t *testing.T) {
	t.Run("objects", func(t *testing.T) { simulations(t, 250, simulateObjects) })
	t.Run("bytes", func(t *testing.T) { simulations(t, 40, simulateBytes) })
}

// simulation runs one seed.
type simulation = func(t *testing.T, seed uint64, total *tally)

func simulations(t *testing.T, runs int, simulate simulation) {
	if seed, err := strconv.ParseUint(os.Getenv("TRIBUTARY_SIM_SEED"), 10, 64); err == nil {
		simulate(t, seed, &tally{faults: map[string]int{}})
		return
	}
	if race.Enabled {
		runs /= 8
	}
	if n, err := strconv.Atoi(os.Getenv("TRIBUTARY_SIM_RUNS")); err == nil {
		runs = n
	}
	total := &tally{faults: map[string]int{}}
	seeds := slices.Concat(regressions, resumed)
	for i := range runs {
		seeds = append(seeds, uint64(1000+i), rand.Uint64()) // half fixed, half fresh
	}
	for _, seed := range seeds {
		if simulate(t, seed, total); t.Failed() {
			t.Fatalf("seed %d: replay it with -run %s and TRIBUTARY_SIM_SEED=%d, and keep it among the regressions", seed, t.Name(), seed)
		}
	}
	t.Logf("%d seeds, %d of them resumed, %d steps, %d states written, %d replaces", len(seeds), total.resumed, total.steps, total.writes, total.replaces)
	require.Positive(t, total.resumed)
	for _, fault := range slices.Sorted(maps.Keys(total.faults)) {
		t.Logf("%7d  %s", total.faults[fault], fault)
	}
	if race.Enabled {
		return // so few seeds do not try each fault
	}
	for _, fault := range allFaults {
		require.Positive(t, total.faults[fault], "%s was never tried", fault)
	}
}

// tally counts over all seeds.
type tally struct {
	steps, writes, replaces, resumed int
	faults                           map[string]int
}

// maxRequests is what two quiet hours may bring: a watch each 5 to 10 minutes, and what is left to
// be healed.
const maxRequests = 60

// maxProbes is one a minute.
const maxProbes = 134

// maxOdd are further ones where metadata may be odd: one for each sweep of two hours, whose page of
// metadata is of no use.
const maxOdd = 9

// rig is the way from the server to a copy.
type rig[T store.Object] struct {
	source listwatch.ListerWatcher[T]
	store  *checkedStore[T]
	load   func(pods []*corev1.Pod, version string) error // into the store
}

// simulateObjects simulates a source that tells objects.
func simulateObjects(t *testing.T, seed uint64, total *tally) {
	simulate(t, seed, total, func(m *model) rig[*corev1.Pod] {
		byDefault := store.ByLabel[*corev1.Pod]("default")
		pods := store.NewIndexer(byDefault)
		return rig[*corev1.Pod]{m, judged(m, pods, pods, byDefault), func(held []*corev1.Pod, version string) error {
			return pods.Replace(store.Items(held...), store.At(version))
		}}
	})
}

func simulate[T store.Object](t *testing.T, seed uint64, total *tally, through func(*model) rig[T]) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, seed, total)
		rig := through(m)
		st := rig.store
		var options []Option
		if seed%3 == 0 && !slices.Contains(regressions, seed) {
			options = append(options, WithResume())
			m.resume(rig.load)
		}
		ctx, cancel := context.WithCancel(t.Context())
		r := New[T](rig.source, st, options...)
		r.random = lockedRandom(seed)
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		<-m.calm
		// Of the simulated clock: silences, slow retries, the longest wait for a heal.
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		status := r.Status()
		probes := maxProbes
		if m.odd {
			probes += maxOdd
		}
		if m.requests > maxRequests || m.probes > probes {
			t.Errorf("seed %d: %d requests in two quiet hours, and %d probes", seed, m.requests, m.probes)
		}
		if want := m.last(); !maps.Equal(want.objects, st.all()) {
			t.Errorf("seed %d: did not converge: server %v, store %v; %s", seed, want, st.all(), status)
		}
		if status.Err != nil || !status.Synced || status.Phase != Watching {
			t.Errorf("seed %d: converged, but is not well: %s", seed, status)
		}
		if err := r.Ready(3 * time.Minute); err != nil {
			t.Errorf("seed %d: converged, but is not ready: %v", seed, err)
		}
		if got := st.Snapshot().ResourceVersion(); status.ResourceVersion != got {
			t.Errorf("seed %d: Status says version %s, the store %s", seed, status.ResourceVersion, got)
		}
		if status.LastEvent.After(status.LastContact) || status.LastProgress.After(status.LastContact) {
			t.Errorf("seed %d: event or progress without contact: %+v", seed, status)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("seed %d: Run returned %v", seed, err)
		}
		if v := r.Status().Verdict(0); v.Class != Ended {
			t.Errorf("seed %d: nothing keeps the copy, and its verdict is %q", seed, v.Class)
		}
		total.steps += m.steps
	})
}

// moment is a state that the server had.
type moment struct {
	version int
	objects map[string]string // name -> "uid@version"
	event   byte              // what led here: '+', '~', '-'
	name    string
	object  string
}

// model is a server with a history. Its lock is free while the reflector or the clock has its turn.
type model struct {
	mu     sync.Mutex
	t      *testing.T
	seed   uint64
	random *rand.Rand
	total  *tally
	judge  *judge

	history   []moment
	floor     int  // versions below it are out of the window
	behind    int  // a stale server shows this many moments less than there are
	cutOff    bool // it does not reach its etcd: nothing consistent is answered
	noWatch   bool // the role has list alone
	asked     int  // the newest version when the last list was begun
	defaults  int  // what the schema has for a field that objects leave out; see "other content"
	watchList watchListSupport

	steps int
	done  atomic.Bool   // no more faults
	calm  chan struct{} // closed when done

	// What makes seeds differ: for how many steps there are faults, how rare they are, and of which
	// kinds. With few of one kind, each must be healed by what is there to heal it, and not by the
	// next one.
	faultySteps, rarity int
	enabled             map[string]bool

	listed map[string]string // the content that the last list had, by name

	requests int  // since the faults ended, probes apart
	probes   int  // since then
	odd      bool // metadata may be of other types than its own: see oddMetadata
	frozen   bool // nothing is written: see restore
	little   bool // with frozen: nothing that would reach the version held
	lossy    bool // the store may differ: something was garbled since the last whole list
	torn     bool // something was garbled in the list under way
	wentBack bool // a server that is behind, or was restored, may have answered
	epoch    int  // times restored
}

type watchListSupport int

const (
	supported watchListSupport = iota
	refused
	ignored
	neverEnds
	fails
)

func newModel(t *testing.T, seed uint64, total *tally) *model {
	m := &model{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 5)), total: total, calm: make(chan struct{})}
	m.history = []moment{{version: 100, objects: map[string]string{}}}
	m.floor = 100
	m.watchList = []watchListSupport{supported, supported, supported, refused, ignored, neverEnds, fails}[m.random.IntN(7)]
	m.faultySteps = []int{20, 200, 2_000}[m.random.IntN(3)]
	m.rarity = []int{1, 1, 5, 30}[m.random.IntN(4)]
	m.enabled = map[string]bool{}
	kinds := []int{1, 2, 5, len(allFaults)}[m.random.IntN(4)]
	for _, i := range m.random.Perm(len(allFaults))[:kinds] {
		m.enabled[allFaults[i]] = true
	}
	m.noWatch = m.enabled["watch refused"] && m.random.IntN(2) == 0
	for range m.random.IntN(20) {
		m.write()
	}
	return m
}

func (m *model) last() moment { return m.history[len(m.history)-1] }

// shown is the newest state that the server answering now knows.
func (m *model) shown() moment { return m.history[max(0, len(m.history)-1-m.behind)] }

// write makes one change. Versions have gaps: other collections are written too.
func (m *model) write() {
	if m.frozen && !(m.little && m.last().version+3 < m.judge.version) {
		return
	}
	m.total.writes++
	now := m.last()
	next := moment{version: now.version + 1 + m.random.IntN(3), objects: maps.Clone(now.objects)}
	next.name = fmt.Sprintf("pod-%d", m.random.IntN(6))
	held, there := now.objects[next.name]
	uid, _, _ := strings.Cut(held, "@")
	switch {
	case !there:
		next.event, uid = '+', fmt.Sprintf("uid%d.%d", m.epoch, next.version)
	case m.random.IntN(3) == 0:
		next.event = '-'
	default:
		next.event = '~'
	}
	next.object = fmt.Sprintf("%s@%d", uid, next.version)
	next.objects[next.name] = next.object
	if next.event == '-' {
		delete(next.objects, next.name)
	}
	m.history = append(m.history, next)
}

// at returns the state at a version: the newest one that is not newer.
func (m *model) at(version int) moment {
	i, exact := slices.BinarySearchFunc(m.history, version, func(s moment, v int) int { return s.version - v })
	if !exact {
		i--
	}
	return m.history[max(i, 0)]
}

// step lets the world go on: writes, compactions, servers that lag or catch up. After a while the
// faults end.
func (m *model) step() {
	m.steps++
	for m.random.IntN(3) == 0 {
		m.write()
	}
	if m.done.Load() {
		return
	}
	switch m.random.IntN(60) {
	case 0: // a compaction
		m.floor = m.history[m.random.IntN(len(m.history))].version
	case 1:
		m.floor = m.last().version
	case 2:
		if m.fault(m.rarity, "stale server") != "" {
			m.behind = m.random.IntN(5)
			m.cutOff = m.fault(1, "cut off from etcd") != ""
			m.wentBack = m.wentBack || m.behind > 0
		}
	case 3:
		m.behind, m.cutOff = 0, false
	case 4:
		m.noWatch = false
	case 5:
		if m.fault(1, "other content") != "" {
			m.defaults++
		}
	}
	if m.steps >= m.faultySteps {
		m.done.Store(true)
		m.behind, m.cutOff, m.watchList = 0, false, supported
		close(m.calm)
	}
}

// restore brings the server back to an older state, as from a backup: what came after it has never
// been. Nothing is written until somebody has listed, or little: a client cannot see a history that
// has grown over its version.
func (m *model) restore(frozen bool) {
	m.little = !frozen
	m.epoch++
	m.wentBack, m.lossy, m.frozen = true, true, true
	keep := max(1, len(m.history)-1-m.random.IntN(10))
	m.history = m.history[:keep]
	m.behind, m.floor = 0, min(m.floor, m.last().version)
}

// resume gives the store a state of an earlier run. Meanwhile the server went on, or was replaced.
func (m *model) resume(load func(pods []*corev1.Pod, version string) error) {
	random := rand.New(rand.NewPCG(m.seed, 11)) // the server's own is left as it is
	m.total.resumed++
	state := m.history[random.IntN(len(m.history))]
	var held []*corev1.Pod
	for name, object := range state.objects {
		p := podOf(name, object)
		p.Labels = map[string]string{"default": strconv.Itoa(m.defaults)}
		held = append(held, p)
	}
	version := strconv.Itoa(state.version)
	require.NoError(m.t, load(held, version))
	m.judge.check(state.version)
	switch random.IntN(6) {
	case 0:
		m.restore(true)
	case 1:
		m.become()
	}
}

// fault draws one of the given faults, rarely, and counts it; "" is none.
func (m *model) fault(rarity int, of ...string) string {
	if m.done.Load() || m.random.IntN(rarity) != 0 {
		return ""
	}
	fault := of[m.random.IntN(len(of))]
	if !m.enabled[fault] {
		return ""
	}
	m.total.faults[fault]++
	return fault
}

func podOf(name, object string) *corev1.Pod {
	uid, version, _ := strings.Cut(object, "@")
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

// lockedRandom is for the reflector, whose prober has a goroutine of its own.
func lockedRandom(seed uint64) func() float64 {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 7))
	return func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}
}
