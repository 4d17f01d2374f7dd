package informer_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
)

// keptCopy is anything of this package that says something about a copy.
type keptCopy interface {
	Ready(maxStaleness time.Duration) error
	Status() informer.Status
	Samples(name string) iter.Seq[metrics.Sample]
}

// notRight returns the classes under which the metrics say that a copy is not right.
func notRight(r metrics.Reporter) (classes []string) {
	for s := range r.Samples("copy") {
		if s.Metric.Name == "tributary_reflector_not_right" {
			classes = append(classes, s.Labels[1])
		}
	}
	return classes
}

// requireNotRight requires that Ready, Status and metrics say the same.
func requireNotRight(t *testing.T, c keptCopy, class reflector.Class, phase reflector.Phase, why string) {
	t.Helper()
	require.EqualError(t, c.Ready(time.Hour), why)
	s := c.Status()
	require.Equal(t, phase, s.Phase)
	require.Equal(t, class, s.Verdict(time.Hour).Class)
	require.EqualError(t, s.Verdict(time.Hour).Err, why)
	require.Equal(t, []string{string(class)}, notRight(c))
}

// TestCopyThatRunDoesNotKeepYet: before Run, no copy is right.
func TestCopyThatRunDoesNotKeepYet(t *testing.T) {
	pods := newPods(t, "a")
	set := informer.NewSet(pods.Server().Config())
	u := informer.NewUnion[*corev1.Pod]()
	requireNotRight(t, u, reflector.NotRun, reflector.Idle, "Run has not been called")
	require.False(t, u.Status().Synced)
	join(t, u, "all", pods.ListerWatcher())
	requireNotRight(t, u, reflector.NotRun, reflector.Idle, "Run has not been called")
	requireNotRight(t, informer.New(pods.ListerWatcher()), reflector.NotRun, reflector.Idle, "Run has not been called")
	require.EqualError(t, set.Ready(time.Hour), "Run of the set has not been called", "a set without copies, too")
	lease := acquire(t, set)
	requireNotRight(t, lease, reflector.NotRun, reflector.Idle, "Run of the set has not been called")
	require.Equal(t, []string{"not_run"}, notRight(set))
	require.EqualError(t, set.Ready(time.Hour), "Run of the set has not been called")
}

// TestCopyThatRunKeepsNoMore: the end of Run ends the worth of the copy at once.
func TestCopyThatRunKeepsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t, "a")
		i := informer.New(pods.ListerWatcher())
		u := informer.NewUnion[*corev1.Pod]()
		join(t, u, "all", pods.ListerWatcher())
		set := informer.NewSet(pods.Server().Config())
		lease := acquire(t, set)
		stops := []func() error{start(t, i), start(t, u), start(t, set)}
		for _, c := range []keptCopy{i, u, lease} {
			require.NoError(t, c.(interface{ WaitSynced(context.Context) error }).WaitSynced(t.Context()))
			require.NoError(t, c.Ready(time.Minute))
			require.Empty(t, notRight(c))
		}
		require.NoError(t, set.Ready(time.Minute))
		for _, stop := range stops {
			require.NoError(t, stop())
		}
		for _, c := range []keptCopy{i, u, lease} {
			requireNotRight(t, c, reflector.Ended, reflector.Stopped, "Run has ended")
			require.Equal(t, 1, c.Status().Objects, "it can still be read")
		}
		require.EqualError(t, set.Ready(time.Minute), "Run of the set has ended")
		require.Equal(t, []string{"ended"}, notRight(set))
	})
}

// TestCopyThatRunCannotBegin: a Run that fails at once leaves its error, also if the program drops
// it.
func TestCopyThatRunCannotBegin(t *testing.T) {
	s := newServer("a")
	ring := informer.WithRing(0)
	u := informer.NewUnion[*corev1.Pod](ring)
	join(t, u, "all", s)
	for c, why := range map[interface {
		keptCopy
		Run(context.Context) error
	}]string{
		informer.New[*corev1.Pod](s, ring): "informer: WithRing(0): give at least 1",
		u:                                  "informer: WithRing(0): give at least 1",
		informer.New[*corev1.Pod](nil):     "informer: the source is nil",
	} {
		require.EqualError(t, c.Run(t.Context()), why)
		requireNotRight(t, c, reflector.Ended, reflector.Stopped, "Run has ended (ended: "+why+")")
	}
	require.ErrorContains(t, u.Members()[0].Verdict(0).Err, "WithRing(0)", "no member began")
	set := informer.NewSet(nil)
	require.EqualError(t, set.Run(t.Context()), "informer: NewSet: the config is nil")
	require.EqualError(t, set.Ready(time.Hour), "Run of the set has ended: informer: NewSet: the config is nil")
	set = informer.NewSet(&rest.Config{}, ring)
	require.Error(t, set.Run(t.Context()))
	require.ErrorContains(t, set.Ready(time.Hour), "WithRing(0)")
}

// TestPanicShowsWhileAnotherHandlerBlocks: Run waits for the handler that blocks, and cannot
// return. The panic shows at once.
func TestPanicShowsWhileAnotherHandlerBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := newPods(t, "a")
		i := informer.New(pods.ListerWatcher())
		u := informer.NewUnion[*corev1.Pod]()
		join(t, u, "all", pods.ListerWatcher())
		set := informer.NewSet(pods.Server().Config())
		lease := acquire(t, set)
		goOn := make(chan struct{})
		var ran []chan error
		for _, run := range []func(context.Context) error{i.Run, u.Run, set.Run} {
			ended := make(chan error, 1)
			ran = append(ran, ended)
			go func() { ended <- run(t.Context()) }()
		}
		copies := []interface {
			keptCopy
			adder
		}{i, u, lease}
		for _, c := range copies {
			add(t, c, func(podEvent) { <-goOn }, informer.WithName("blocks"))
			add(t, c, func(e podEvent) {
				if e.Key == "ns/b" {
					panic("oh")
				}
			}, informer.WithName("bad"))
		}
		synctest.Wait()
		for _, c := range copies {
			require.NoError(t, c.Ready(time.Minute))
		}
		createPod(pods, "ns", "b")
		synctest.Wait()
		const why = `informer: handler "bad" panicked: oh (at added ns/b)`
		for _, c := range copies {
			requireNotRight(t, c, reflector.Ended, reflector.Stopped, "Run has ended (ended: "+why+")")
			require.Equal(t, time.Now(), c.Status().Since)
		}
		require.ErrorContains(t, set.Ready(time.Minute), why)
		for _, ended := range ran {
			require.Empty(t, ended, "Run waits for the other handler")
		}
		close(goOn)
		for _, ended := range ran {
			require.EqualError(t, <-ended, why)
		}
		require.EqualError(t, set.Ready(time.Minute), "Run of the set has ended: "+why)
	})
}

// TestUnionWithoutMembers: a union without members that Run keeps is synced and empty, but not
// ready: nobody has said what it is to have. A member that is not right is named.
func TestUnionWithoutMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := informer.NewUnion[*corev1.Pod]()
		stop := start(t, u)
		require.NoError(t, u.WaitSynced(t.Context()))
		time.Sleep(time.Hour) // simulated time
		require.ErrorContains(t, u.Ready(time.Minute), "the union has no members")
		require.True(t, u.Status().Synced)
		require.Zero(t, u.Status().Objects)

		s := newServer("a")
		s.silence()
		join(t, u, "well", newServer("b"))
		source := &refusable{podSource: s}
		source.refuse(true)
		m := join(t, u, "refused", source)
		synctest.Wait()
		require.ErrorContains(t, u.Ready(time.Minute), `member "refused": not synced yet (forbidden: `)
		require.Equal(t, []string{"not_synced"}, notRight(u))
		m.Remove()
		require.NoError(t, u.Ready(time.Minute))
		require.NoError(t, stop())
		requireNotRight(t, u, reflector.Ended, reflector.Stopped, "Run has ended")
	})
}

// TestRunNamesTheHandlerThatItWaitsFor, once.
func TestRunNamesTheHandlerThatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := make(chan string, 9)
		logger := funcr.New(func(_, line string) { log <- line }, funcr.Options{})
		pods := informer.New(newPods(t, "a").ListerWatcher())
		end := make(chan struct{})
		for name, handle := range map[string]func(informer.Event[*corev1.Pod]){
			"slow": func(informer.Event[*corev1.Pod]) { <-end },
			"good": func(informer.Event[*corev1.Pod]) {},
		} {
			_, err := pods.AddHandler(handle, informer.WithName(name))
			require.NoError(t, err)
		}
		ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), logger))
		ended := make(chan error, 1)
		go func() { ended <- pods.Run(ctx) }()
		synctest.Wait()
		cancel()
		time.Sleep(time.Minute)
		require.Len(t, log, 1)
		line := <-log
		require.Contains(t, line, `"Run has ended, and waits for a handler" "error"="the handler has not returned from an event"`)
		require.Contains(t, line, `"handler"="slow"`)
		close(end)
		require.NoError(t, <-ended)
	})
}
