package controller_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/enqueue"
	"github.com/tributary-go/tributary/informer/join"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

type pod = *corev1.Pod

// rig is a server of pods, and the keys that a controller was called for.
type rig struct {
	pods *listwatchtest.Collection[pod]

	mu     sync.Mutex
	called []string
	result map[string]func() error // by key; absent is done
}

func newRig(t *testing.T, names ...string) *rig {
	r := &rig{pods: listwatchtest.New(t, listwatchtest.Pods()), result: map[string]func() error{}}
	for _, name := range names {
		r.create(name)
	}
	return r
}

func (r *rig) create(name string, change ...func(pod)) pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	for _, c := range change {
		c(p)
	}
	return r.pods.Create(p)
}

func (r *rig) label(p pod, value string) pod {
	p = p.DeepCopy()
	p.ResourceVersion = ""
	metav1.SetMetaDataLabel(&p.ObjectMeta, "app", value)
	return r.pods.Update(p)
}

func (r *rig) reconcile(_ context.Context, key string) error {
	r.mu.Lock()
	r.called = append(r.called, key)
	result := r.result[key]
	r.mu.Unlock()
	if result != nil {
		return result()
	}
	return nil
}

// calls returns the keys called since the last time, sorted, once there is nothing to do.
func (r *rig) calls() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	called := r.called
	r.called = nil
	slices.Sort(called)
	return called
}

func (r *rig) set(key string, result func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result[key] = result
}

// controller is one of the pods themselves, with a copy that it runs.
func (r *rig) controller() *controller.Controller[string] {
	pods := informer.New(r.pods.ListerWatcher())
	return &controller.Controller[string]{
		Reconcile: r.reconcile,
		Feeds:     []controller.Feed[string]{controller.For(pods)},
		Copies:    []controller.Runner{pods},
	}
}

// run runs a controller until the result is called, which returns Run's error.
func run[K comparable](ctx context.Context, c *controller.Controller[K]) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	time.Sleep(time.Second) // of the bubble's: it has started
	return func() error { cancel(); return <-ended }
}

// TestEachChangeIsACall: the initial objects, and each change.
func TestEachChangeIsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a", "b")
		c := r.controller()
		require.EqualError(t, c.Ready(time.Hour), "controller: it is idle")
		stop := run(t.Context(), c)
		require.Equal(t, []string{"ns/a", "ns/b"}, r.calls())
		require.NoError(t, c.Ready(time.Hour))
		made := r.create("c")
		require.Equal(t, []string{"ns/c"}, r.calls())
		r.label(made, "web")
		require.Equal(t, []string{"ns/c"}, r.calls())
		r.pods.Remove(made)
		require.Equal(t, []string{"ns/c"}, r.calls())
		c.Add("elsewhere")
		require.Equal(t, []string{"elsewhere"}, r.calls())
		c.AddAll()
		require.Equal(t, []string{"ns/a", "ns/b"}, r.calls())
		require.NoError(t, stop())
		require.Equal(t, controller.Ended, c.Status().Phase)
		require.ErrorContains(t, c.Run(t.Context()), "Run was called twice")
	})
}

// TestOwnersAndLabels: a change is a call for the keys before and after it. A pod that is
// relabelled and deleted while its handler is behind is one event, of the final state.
func TestOwnersAndLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		yes := true
		owned := func(version, kind string) func(pod) {
			return func(p pod) {
				p.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "no-controller", UID: "1"},
					{APIVersion: version, Kind: kind, Name: p.Name + "-owner", UID: "2", Controller: &yes},
				}
			}
		}
		labelled := func(p pod) { p.Labels = map[string]string{"app": "web"} }
		r.create("a", owned("apps/v1beta9", "ReplicaSet"))
		r.create("b", owned("apps/v1", "StatefulSet"))
		b := r.create("c", labelled)
		pods := informer.New(r.pods.ListerWatcher(), informer.WithRing(1))
		hold := make(chan struct{})
		labels := enqueue.Label[pod]("app")
		c := &controller.Controller[string]{
			Reconcile: r.reconcile,
			Feeds: []controller.Feed[string]{
				controller.From(pods, enqueue.Owner[pod](schema.GroupKind{Group: "apps", Kind: "ReplicaSet"})),
				controller.From(pods, func(p pod) []string {
					if p.Name == "slow" {
						<-hold
					}
					return labels(p)
				}),
			},
			Copies: []controller.Runner{pods},
		}
		stop := run(t.Context(), c)
		require.Equal(t, []string{"ns/a-owner", "ns/web"}, r.calls())
		b = r.label(b, "db")
		require.Equal(t, []string{"ns/db", "ns/web"}, r.calls())

		r.create("slow") // the handler hangs
		b = r.label(b, "other")
		r.pods.Remove(b)
		r.create("d")
		r.create("e")
		close(hold)
		require.Contains(t, r.calls(), "ns/db", "the pod has left it")
		require.NoError(t, stop())
	})
}

// TestResults: done, again, an error and a panic.
func TestResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "again", "failing", "goexit", "panicking", "reason")
		var log lines
		left := map[string]int{"failing": 3, "panicking": 1, "goexit": 1}
		once := func(name string, otherwise func() error) func() error {
			return func() error {
				r.mu.Lock()
				left[name]--
				ended := left[name] < 0
				r.mu.Unlock()
				if ended {
					return nil
				}
				return otherwise()
			}
		}
		r.set("ns/again", func() error { return controller.After(time.Minute) })
		r.set("ns/reason", func() error { return fmt.Errorf("the quota is full: %w", controller.After(time.Minute)) })
		r.set("ns/failing", once("failing", func() error { return errors.New("no such thing") }))
		r.set("ns/panicking", once("panicking", func() error { panic("index out of range") }))
		r.set("ns/goexit", once("goexit", func() error { runtime.Goexit(); return nil }))
		c := r.controller()
		stop := run(logr.NewContext(t.Context(), log.logger()), c)
		require.Equal(t, []string{
			"ns/again", "ns/failing", "ns/failing", "ns/failing", "ns/failing",
			"ns/goexit", "ns/goexit", "ns/panicking", "ns/panicking", "ns/reason",
		}, r.calls())
		s := c.Status()
		require.Equal(t, []uint64{3, 2, 5, 2}, []uint64{s.Done, s.Again, s.Failed, s.Panicked})
		require.Zero(t, s.Failing)
		require.NoError(t, s.Err)
		text := log.text()
		require.Equal(t, 1, strings.Count(text, `"Reconcile did not return" "error"="Reconcile has panicked: index out of range" "key"="ns/panicking" "stack"=`), text)
		require.Contains(t, text, `"error"="Reconcile has ended its goroutine" "key"="ns/goexit"`)
		require.Regexp(t, `"Will try again" "key"="ns/failing" "attempt"=3 "pause"="(1|2)[0-9.]+ms" "error"="no such thing"`, text)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"ns/again", "ns/reason"}, r.calls())

		r.set("ns/failing", func() error { return errors.New("no such thing") })
		c.Add("ns/failing")
		require.Equal(t, []string{"ns/failing"}, r.calls()[:1])
		require.EqualError(t, c.Status().Err, "ns/failing: no such thing")
		samples := map[string]float64{}
		for sample := range c.Samples("pods") {
			samples[sample.Metric.Name+" "+strings.Join(sample.Labels, " ")] = sample.Value
		}
		require.Equal(t, 1.0, samples["tributary_controller_failing_keys pods"], "%v", samples)
		require.Equal(t, 1.0, samples["tributary_controller_working pods"])
		require.NotContains(t, samples, "tributary_controller_not_right pods stuck")
		require.Equal(t, 2.0, samples["tributary_controller_calls_total pods panicked"])
		require.Equal(t, map[string]error{"pods": c.Status().Err}, maps.Collect(c.Causes("pods")))
		require.NoError(t, stop())
	})
}

// TestItStartsWhenAllCopiesAreRight, and says until then which one is not.
func TestItStartsWhenAllCopiesAreRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a")
		nodes := listwatchtest.Serve(r.pods.Server(), listwatchtest.Of[*corev1.Node]())
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no role"))
		lists := nodes.Fail(listwatchtest.List, forbidden, listwatchtest.UntilLifted())
		watches := nodes.Fail(listwatchtest.Watch, forbidden, listwatchtest.UntilLifted())
		c := r.controller()
		copied := informer.New(nodes.ListerWatcher())
		c.Feeds = append(c.Feeds, controller.From(copied, func(*corev1.Node) []string { return nil }))
		c.Copies = append(c.Copies, copied)
		var log lines
		stop := run(logr.NewContext(t.Context(), log.logger()), c)
		time.Sleep(time.Minute)
		require.Empty(t, r.calls())
		require.Equal(t, controller.Waiting, c.Status().Phase)
		const why = "feed 2 (*v1.Node): not synced yet (forbidden: list nodes: nodes is forbidden: no role)"
		require.EqualError(t, c.Status().Waits, why)
		require.EqualError(t, c.Ready(time.Hour), "controller: waiting for copies: "+why)
		require.Contains(t, log.text(), `"Waiting for copies to be right" "error"="`+why)
		require.Equal(t, map[string]error{"x": c.Status().Waits}, maps.Collect(c.Causes("x")))
		lists.Lift()
		watches.Lift()
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"ns/a"}, r.calls())
		require.NoError(t, c.Ready(time.Hour))
		require.NoError(t, stop())
	})
}

// TestStop: keys that wait are dropped, a call under way is finished while its copies live, and one
// that takes too long has its context ended.
func TestStop(t *testing.T) {
	for name, takes := range map[string]time.Duration{"in time": 19 * time.Second, "too long": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "a", "b")
				c := r.controller()
				pods := c.Copies[0].(*informer.Informer[pod])
				r.set("ns/a", nil)
				var begun, ended time.Time
				var cut error
				c.Reconcile = func(ctx context.Context, key string) error {
					require.True(t, begun.IsZero(), "%s is dropped", key)
					begun = time.Now()
					select {
					case <-time.After(takes):
					case <-ctx.Done():
						cut = ctx.Err()
					}
					require.Equal(t, 2, pods.Snapshot().Len())
					require.NoError(t, pods.Ready(time.Hour), "the copies live on")
					ended = time.Now()
					return cut
				}
				stop := run(t.Context(), c)
				require.NoError(t, stop())
				require.Equal(t, takes > time.Minute, cut != nil)
				require.WithinDuration(t, begun.Add(min(takes, 21*time.Second)), ended, time.Second)
			})
		})
	}
}

// TestALostLease ends the call under way at once, and Run with its cause.
func TestALostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a")
		c := r.controller()
		lost := errors.New("the lease is lost")
		lease, lose := context.WithCancelCause(t.Context())
		c.BaseContext = func() context.Context { return lease }
		var cause error
		c.Reconcile = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		}
		time.AfterFunc(time.Minute, func() { lose(lost) })
		began := time.Now()
		err := c.Run(t.Context())
		require.Equal(t, time.Minute, time.Since(began))
		require.EqualError(t, err, "controller: BaseContext: the lease is lost")
		require.ErrorIs(t, cause, lost)
	})
}

// TestACopyThatEnds is the error of Run, with the cause.
func TestACopyThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a")
		c := r.controller()
		pods := c.Copies[0].(*informer.Informer[pod])
		_, err := pods.AddHandler(func(informer.Event[pod]) { panic("a fault") }, informer.WithName("mine"))
		require.NoError(t, err)
		err = c.Run(t.Context())
		require.ErrorContains(t, err, `copy 1 (*informer.Informer[*k8s.io/api/core/v1.Pod]): informer: handler "mine" panicked: a fault`)
		require.ErrorContains(t, controller.Run(t.Context(), r.reconcile, controller.For(pods)), "the informer has stopped")
	})
}

func TestBadFields(t *testing.T) {
	r := newRig(t)
	pods := informer.New(r.pods.ListerWatcher())
	feeds := []controller.Feed[string]{controller.For(pods)}
	for want, c := range map[string]*controller.Controller[string]{
		"Reconcile is nil":      {Feeds: feeds},
		"Feeds[0] is empty":     {Reconcile: r.reconcile, Feeds: make([]controller.Feed[string], 1)},
		"Copies[1] is nil (":    {Reconcile: r.reconcile, Copies: []controller.Runner{pods, (*informer.Informer[pod])(nil)}},
		"Workers is -1":         {Reconcile: r.reconcile, Workers: -1},
		"Timeout is -1s":        {Reconcile: r.reconcile, Timeout: -time.Second},
		"MaxStaleness is -1s":   {Reconcile: r.reconcile, MaxStaleness: -time.Second},
		"StuckAfter is -1s":     {Reconcile: r.reconcile, StuckAfter: -time.Second},
		"Grace is -1ns":         {Reconcile: r.reconcile, Grace: -1},
		"Checkpoint: set Name,": {Reconcile: r.reconcile, Feeds: feeds, Checkpoint: filepath.Join(t.TempDir(), "file")},
		"none/file: open: no such file or directory": {
			Reconcile: r.reconcile, Feeds: feeds, Name: "mine", Checkpoint: filepath.Join(t.TempDir(), "none", "file"),
		},
	} {
		require.ErrorContains(t, c.Run(t.Context()), want)
		require.Equal(t, controller.Ended, c.Status().Phase)
	}
	numbers := &controller.Controller[int]{
		Reconcile:  func(context.Context, int) error { return nil },
		Feeds:      []controller.Feed[int]{controller.From(pods, func(pod) []int { return []int{1} })},
		Name:       "mine",
		Checkpoint: filepath.Join(t.TempDir(), "file"),
	}
	require.EqualError(t, numbers.Run(t.Context()), "controller: Checkpoint: keys must be strings, and are of type int")
	require.PanicsWithValue(t, "controller: a feed of *v1.Pod: the copy or its function is nil", func() { controller.From[pod, string](pods, nil) })
	require.PanicsWithValue(t, "controller: a feed of *v1.Pod: the copy or its function is nil", func() { controller.For[pod](nil) })
}

// TestMoments: Reconcile reads one moment, and a write that fails is tried again.
func TestMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "a")
		pods := informer.New(r.pods.ListerWatcher())
		var view join.View
		part := join.Add(&view, pods)
		var mu sync.Mutex
		var last join.Moment
		var seen []string
		failures := 2
		c := &controller.Controller[string]{
			Feeds: []controller.Feed[string]{controller.Moments(&view, func(now join.Moment) (keys []string) {
				mu.Lock()
				defer mu.Unlock()
				last = now
				for change := range part.Changes(now) {
					keys = append(keys, change.Key)
				}
				return keys
			})},
			Copies: []controller.Runner{pods},
			Reconcile: func(_ context.Context, key string) error {
				mu.Lock()
				defer mu.Unlock()
				if failures--; failures >= 0 {
					return errors.New("the write has failed")
				}
				_, held := part.In(last).Get(key)
				seen = append(seen, fmt.Sprint(key, " ", held))
				return nil
			},
		}
		require.EqualError(t, view.Ready(0), "join: *v1.Pod: Run has not been called")
		stop := run(t.Context(), c)
		require.NoError(t, view.Ready(time.Hour))
		b := r.create("b")
		time.Sleep(time.Second)
		r.pods.Remove(b)
		time.Sleep(time.Second)
		c.AddAll()
		require.NoError(t, stop())
		require.Equal(t, []string{"ns/a true", "ns/b true", "ns/b false"}, seen)
	})
}

// lines is a log.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all.WriteString(line + "\n")
	}, funcr.Options{})
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}
