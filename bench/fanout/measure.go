package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// loop is a closed loop: a writer that has at most so many writes in flight, and the watchers.
type loop struct {
	load
	subject subject
	pods    []*corev1.Pod
	bytes   []int // of each pod
	first   int   // the version before the first write

	clock     time.Time
	spent     harness.Figures // by the writes
	sent      []time.Duration // per write
	taken     []time.Duration // per write, until its last delivery
	missing   []atomic.Int32  // deliveries still to come, per write
	tokens    chan struct{}
	delivered atomic.Int64 // writes that have reached everybody
	cut       atomic.Int64
	relists   atomic.Int64 // of the slow watcher
	ended     chan error
}

// measure measures a load in this process.
func measure(ctx context.Context, l load) harness.Figures {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	nodes := l.Watchers
	if l.All {
		nodes = l.Pods/60 + 1
	}
	if l.Rate > 0 {
		l.InFlight = 2 * l.Events
	}
	m := &loop{
		load: l, first: l.Pods, clock: time.Now(), tokens: make(chan struct{}, l.InFlight), ended: make(chan error, 1),
	}
	names := make([]string, min(nodes, l.Pods)) // one for all pods of a node, as after our decoder
	for i := range names {
		names[i] = node(i)
	}
	for i := range l.Pods {
		p := world.Pods{PerSet: 50}.Pod(i, i, 0)
		p.Spec.NodeName = names[i%len(names)]
		m.pods, m.bytes = append(m.pods, p), append(m.bytes, p.Size())
	}
	version := world.Version(l.Pods)
	warm := l.warm()
	total := warm + l.Events
	m.sent, m.taken, m.missing = make([]time.Duration, total), make([]time.Duration, total), make([]atomic.Int32, total)
	fanOut := int32(1)
	if l.All {
		fanOut = int32(l.Watchers)
	}
	for i := range m.missing {
		m.missing[i].Store(fanOut)
	}
	m.subject = newSubject(ctx, l.Library, m.pods, version)
	if l.Initial {
		return m.measureInitial(ctx)
	}
	before := inUse()
	m.watchAll(ctx, version)
	if l.Beside {
		go m.accompany(ctx)
	}
	waiting := inUse()
	err := m.writeAll(0, warm)
	runtime.GC()
	m.spent = harness.Figures{}
	if err == nil {
		stop := harness.Profile(l.Library)
		err = m.writeAll(warm, total)
		stop()
	}
	if m.cut.Load() > 0 {
		// The row ends here.
		return harness.Figures{"cut": float64(m.cut.Load()), "peak": harness.Used()["peak"]}
	}
	harness.Check(err)
	f := m.figures(m.taken[warm:], float64(l.Events), float64(l.Events)*float64(fanOut)).With("", m.spent)
	if l.Beside {
		f["relists"] = float64(m.relists.Load())
	}
	if n := float64(l.Watchers + l.Dead); n >= 1000 { // of fewer, what else is in the heap decides
		after := inUse()
		f["waiting"] = (waiting["heap"] - before["heap"] + waiting["stacks"] - before["stacks"]) / n
		f["told"] = (waiting["heap"] - before["heap"] + after["stacks"] - before["stacks"]) / n
	}
	return f
}

// figures has those of every load.
func (m *loop) figures(taken []time.Duration, events, deliveries float64) harness.Figures {
	times := make([]float64, len(taken))
	for i, d := range taken {
		times[i] = float64(d) / 1e3
	}
	return harness.Figures{
		"events": events, "deliveries": deliveries, "p50": harness.Median(times), "p99": harness.Quantile(times, 0.99), "peak": harness.Used()["peak"],
	}
}

// measureInitial has all watchers begin at once, each with the whole state.
func (m *loop) measureInitial(ctx context.Context) harness.Figures {
	taken := make([]time.Duration, m.Watchers)
	runtime.GC()
	began, meter := time.Now(), harness.Begin(m.Library)
	var watchers sync.WaitGroup
	watchers.Add(m.Watchers)
	for i := range m.Watchers {
		left := m.Pods
		ended := func() { taken[i] = time.Since(began); watchers.Done() }
		lost := func(error) {
			if left > 0 {
				m.cut.Add(1)
				ended()
			}
		}
		go func() {
			if err := m.subject.watch(ctx, "", "0", func(string) {
				if left--; left == 0 {
					ended()
				}
			}, lost); err != nil {
				lost(err)
			}
		}()
	}
	watchers.Wait()
	f := meter.End().With("", m.figures(taken, float64(m.Pods), float64(m.Pods)*float64(m.Watchers)))
	if cut := m.cut.Load(); cut > 0 {
		f["cut"] = float64(cut)
	}
	return f
}

func node(i int) string { return fmt.Sprintf("node-%06d.eu-central-1.compute.internal", i) }

// watchAll starts the watchers, and returns when all of them wait.
func (m *loop) watchAll(ctx context.Context, version string) {
	for i := range m.Watchers + m.Dead {
		name, take, lost := "", m.take, m.lose
		switch {
		case i >= m.Watchers:
			take, lost = forEver(ctx), func(error) {}
		case !m.All:
			name = node(i)
		}
		harness.Check(m.subject.watch(ctx, name, version, take, lost))
	}
	time.Sleep(300 * time.Millisecond) // until the last of them waits; nothing depends on it
}

// forEver takes one event, and no more.
func forEver(ctx context.Context) (take func(string)) { return func(string) { <-ctx.Done() } }

// accompany is the slow watcher, which takes one event of each of its watches. If its version is
// refused it has to list, and begins again at the newest version.
func (m *loop) accompany(ctx context.Context) {
	for version := world.Version(m.first); ctx.Err() == nil; {
		watching, stop := context.WithCancel(ctx)
		lost := func(error) {
			if watching.Err() == nil {
				m.relists.Add(1)
			}
		}
		if err := m.subject.watch(watching, "", version, forEver(watching), lost); err != nil {
			lost(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(500 * time.Millisecond):
		}
		stop()
		if n := m.delivered.Load(); n > 0 {
			version = world.Version(m.first + int(n))
		}
	}
}

// lose notes that a watcher has been ended.
func (m *loop) lose(err error) {
	m.cut.Add(1)
	select {
	case m.ended <- err:
	default:
	}
}

// take notes that a watcher has an event of a version.
func (m *loop) take(text string) {
	version, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	number := version - base - m.first - 1
	if number < 0 {
		return // of the initial state
	}
	if m.missing[number].Add(-1) == 0 {
		m.taken[number] = time.Since(m.clock) - m.sent[number]
		m.delivered.Add(1)
		<-m.tokens
	}
}

// base is the version of number 0.
var base, _ = strconv.Atoi(world.Version(0))

// round is how many objects are made while the clocks stand still, and then written.
const round = 10_000

// writeAll makes the writes from one number to another, and returns when all are delivered. The
// clocks stand still while the objects are made.
func (m *loop) writeAll(from, to int) error {
	for from < to {
		next := min(from+round, to)
		pods := make([]*corev1.Pod, 0, next-from)
		for n := from; n < next; n++ {
			p := *m.pods[m.changes(n)]
			p.ResourceVersion = world.Version(m.first + 1 + n)
			pods = append(pods, &p)
		}
		began, before := time.Now(), harness.Used()["user"]
		if err := m.write(from, pods); err != nil {
			return err
		}
		if m.spent != nil {
			m.spent["wall"] += time.Since(began).Seconds()
			m.spent["user"] += harness.Used()["user"] - before
		}
		from = next
	}
	return nil
}

// changes is the index of the pod that a write changes.
func (m *loop) changes(n int) int { return n * 7919 % len(m.pods) }

// write makes the writes from a number on, and returns when all are delivered.
func (m *loop) write(from int, pods []*corev1.Pod) error {
	to := from + len(pods)
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	began := time.Now()
	for n := from; n < to; n++ {
		if m.Rate > 0 {
			time.Sleep(time.Until(began.Add(time.Duration(n-from) * time.Second / time.Duration(m.Rate))))
		}
		if err := m.begin(timeout.C); err != nil {
			return err
		}
		m.sent[n] = time.Since(m.clock)
		if err := m.subject.update(pods[n-from], m.bytes[m.changes(n)]); err != nil {
			return err
		}
	}
	for m.delivered.Load() < int64(to) {
		select {
		case err := <-m.ended:
			return err
		case <-timeout.C:
			return errors.New("an event has not come")
		case <-time.After(100 * time.Microsecond):
		}
	}
	return nil
}

// begin waits until one more write may be in flight.
func (m *loop) begin(timeout <-chan time.Time) error {
	select {
	case m.tokens <- struct{}{}: // at hand: most of the time, and cheaper than a choice of three
		return nil
	default:
	}
	select {
	case m.tokens <- struct{}{}:
		return nil
	case err := <-m.ended:
		return err
	case <-timeout:
		return errors.New("an event has not come")
	}
}

// inUse is the live heap and the stacks, without what a second collection would shrink.
func inUse() harness.Figures {
	runtime.GC()
	debug.FreeOSMemory()
	return harness.Used()
}
