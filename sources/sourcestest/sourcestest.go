package sourcestest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources"
)

// Node is the node of the sources under test.
const Node = "node-1"

// patience is the default of Rig.Patience.
const patience = 20 * time.Second

// moment is the time for a broken source to do something wrong after it has reported the problem.
const moment = 50 * time.Millisecond

// Rig is a new source, and the functions that change its pods.
type Rig struct {
	// Source is the source under test. It must notice a change within Patience.
	Source sources.Source
	// Patience is how long the suite waits for a change, an error or the end of Run. Default 20 s.
	Patience time.Duration
	// Declare makes pods with these names, in the namespace "default", the only ones. Without names
	// there are no pods, but the source can be read. The suite calls it before Run and during Run.
	Declare func(names ...string)
	// Break makes it impossible to read the pods until the next Declare. Nil: tests that need it
	// are skipped.
	Break func()
	// PodName is the name of the pod that Declare makes for a name. Nil: the same name.
	PodName func(name string) string
}

// Run runs the suite. It calls makeRig once for each test; use t.Cleanup there.
func Run(t *testing.T, makeRig func(t *testing.T) Rig) {
	for _, test := range []struct {
		name string
		run  func(*run)
	}{
		{"an empty first state is set", emptyFirst},
		{"states follow what is declared", follows},
		{"what cannot be read keeps its pods", breaks},
		{"what cannot be read at first has no state", brokenFirst},
		{"the report can be read at any time", reports},
		{"an ended context ends it at once", endedBefore},
		{"pods are left alone once they are set", leavesAlone},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &run{T: t, Rig: makeRig(t), news: make(chan struct{}, 1)}
			r.Patience = cmp.Or(r.Patience, patience)
			require.NotEmpty(t, r.Source.Name())
			test.run(r)
		})
	}
}

// run is a running source, and the states that it has set.
type run struct {
	*testing.T
	Rig
	setting atomic.Int32
	over    atomic.Bool

	mu     sync.Mutex // guards states
	states []state
	news   chan struct{}
}

// state is a state of the source, and copies of its pods as they were then, by key.
type state struct {
	pods   sources.Pods
	copies []*corev1.Pod
}

// start runs the source until the test ends, and then checks how it ended.
func (r *run) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Source.Run(ctx, sources.NewSink(Node, logr.Discard(), r.set)) }()
	r.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			r.over.Store(true)
			require.NoError(r, err, "the end of the context is no error")
		case <-time.After(r.Patience):
			require.Fail(r, "Run does not return when its context has ended")
		}
	})
}

func (r *run) set(pods sources.Pods) {
	if r.setting.Add(1) > 1 {
		r.Error("Set is called by two goroutines at a time")
	}
	defer r.setting.Add(-1)
	if r.over.Load() {
		r.Error("Set is called after Run has returned")
	}
	now := state{pods: pods}
	for _, pod := range pods.Sorted() {
		now.copies = append(now.copies, pod.DeepCopy())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = append(r.states, now)
	select {
	case r.news <- struct{}{}:
	default:
	}
}

func (r *run) newest() (pods sources.Pods, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.states) == 0 {
		return pods, false
	}
	return r.states[len(r.states)-1].pods, true
}

// expect waits until the newest state has these pods alone.
func (r *run) expect(names ...string) {
	r.Helper()
	want := []string{}
	for _, name := range names {
		if r.PodName != nil {
			name = r.PodName(name)
		}
		want = append(want, "default/"+name)
	}
	slices.Sort(want)
	got := []string{}
	timeout := time.After(r.Patience)
	for {
		if pods, ok := r.newest(); ok {
			got = []string{}
			for key := range pods.All() {
				got = append(got, key)
			}
			slices.Sort(got)
			if slices.Equal(got, want) {
				return
			}
		}
		select {
		case <-r.news:
		case <-timeout:
			_, set := r.newest()
			require.FailNow(r, "the state does not follow", "declared: %v; set: %v (%t); report: %+v", want, got, set, r.Source.Report())
		}
	}
}

func (r *run) broken(want bool) {
	r.Helper()
	require.Eventually(r, func() bool { return want == (len(r.Source.Report().Problems) > 0) }, r.Patience, time.Millisecond,
		"there is a problem in the report: %t", want)
}

func emptyFirst(r *run) {
	r.Declare()
	r.start()
	r.expect()
	r.Declare("a")
	r.expect("a")
}

func follows(r *run) {
	r.Declare("a", "b")
	r.start()
	for _, names := range [][]string{{"a", "b"}, {"a", "b", "c"}, {"c"}, {"a"}, {}, {"b"}} {
		r.Declare(names...)
		r.expect(names...)
	}
	report := r.Source.Report()
	require.Empty(r, report.Problems)
	require.NotEmpty(r, report.Mode, "the report says how the source learns of changes")
	require.WithinDuration(r, time.Now(), report.LastContact, r.Patience)
}

func breaks(r *run) {
	if r.Break == nil {
		r.Skip("the rig cannot break")
	}
	r.Declare("a", "b")
	r.start()
	r.expect("a", "b")
	r.Break()
	r.broken(true)
	<-time.After(moment)
	r.expect("a", "b")
	r.Declare("b")
	r.expect("b")
	r.broken(false)
	require.NotZero(r, r.Source.Report().Errors)
}

func brokenFirst(r *run) {
	if r.Break == nil {
		r.Skip("the rig cannot break")
	}
	r.Break()
	r.start()
	r.broken(true)
	<-time.After(moment)
	_, ok := r.newest()
	require.False(r, ok, "a state was set, but nothing could be read")
	r.Declare("a")
	r.expect("a")
}

func reports(r *run) {
	r.Source.Report() // before Run
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				r.Source.Report()
			}
		}
	}()
	r.Declare("a")
	r.start()
	r.expect("a")
	r.Declare("b")
	r.expect("b")
	close(stop)
	<-done
	r.Cleanup(func() { r.Source.Report() })
}

func endedBefore(r *run) {
	r.Declare("a")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done := make(chan error, 1)
	go func() { done <- r.Source.Run(ctx, sources.NewSink(Node, logr.Discard(), r.set)) }()
	select {
	case err := <-done:
		require.NoError(r, err)
	case <-time.After(r.Patience):
		require.Fail(r, "Run does not return though its context had ended")
	}
}

func leavesAlone(r *run) {
	r.Declare("a", "b")
	r.start()
	r.expect("a", "b")
	r.Declare("a")
	r.expect("a")
	r.Declare("a", "b")
	r.expect("a", "b")
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, then := range r.states {
		for i, pod := range then.pods.Sorted() {
			require.Equal(r, then.copies[i], pod, "a pod was modified after it had been set")
		}
	}
}
