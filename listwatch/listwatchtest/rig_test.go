package listwatchtest_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
	for _, do := range change {
		do(p)
	}
	return p
}

func onNode(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

// door is a way to a collection; tests require the same behaviour through both.
type door struct {
	pods *listwatchtest.Collection[*corev1.Pod]
	lw   listwatch.ListerWatcher[*corev1.Pod]
}

// bothDoors runs a test in memory, inside a bubble, and over HTTP.
func bothDoors(t *testing.T, test func(t *testing.T, d door)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			pods := listwatchtest.New(t, listwatchtest.Pods())
			test(t, door{pods, pods.ListerWatcher()})
		})
	})
	t.Run("HTTP", func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods(), watchcache.WithFreshWait(10*time.Millisecond))
		client, err := listwatch.NewRESTClient(pods.Server().Listen(), corev1.SchemeGroupVersion)
		require.NoError(t, err)
		test(t, door{pods, listwatch.FromClient[corev1.Pod](client, "pods")})
	})
}

// names returns the names that a list yields before its error.
func (d door) names(ctx context.Context, options metav1.ListOptions) (names []string, meta metav1.ListMeta, err error) {
	list := d.lw.List(ctx, options)
	for p, failed := range list.Items {
		if failed != nil {
			return names, list.Meta(), failed
		}
		names = append(names, p.Name)
	}
	return names, list.Meta(), nil
}

// follower reads a watch in a goroutine and turns events into lines; the last line tells how the
// watch ended.
type follower struct {
	lines  chan string
	ended  chan error
	cancel context.CancelFunc
}

func (d door) follow(t testing.TB, options metav1.ListOptions) *follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &follower{lines: make(chan string, 100), ended: make(chan error, 1), cancel: cancel}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range d.lw.Watch(ctx, options) {
			if err != nil {
				f.ended <- err
				return
			}
			name := "-"
			if e.Object != nil {
				name = e.Object.Name
			}
			f.lines <- fmt.Sprintf("%s %s@%s", e.Type, name, e.ResourceVersion)
		}
		f.ended <- nil
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return f
}

func (f *follower) require(t testing.TB, want ...string) {
	t.Helper()
	for _, line := range want {
		select {
		case got := <-f.lines:
			require.Equal(t, line, got)
		case err := <-f.ended:
			require.FailNow(t, "the watch ended", "before %s: %v", line, err)
		}
	}
}

// end returns the error that ended the watch, and requires that no event precedes it.
func (f *follower) end(t testing.TB) error {
	t.Helper()
	err := <-f.ended
	select {
	case line := <-f.lines:
		require.FailNow(t, "an event came before the end", line)
	default:
	}
	return err
}

type agent struct {
	*reflector.Reflector[*corev1.Pod]
	held *store.Indexer[*corev1.Pod]
}

func (d door) agent(t testing.TB, options ...reflector.Option) *agent {
	t.Helper()
	a := &agent{held: store.NewIndexer[*corev1.Pod]()}
	a.Reflector = reflector.New(d.lw, a.held, options...)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	require.NoError(t, a.WaitSynced(t.Context()))
	return a
}

func (a *agent) names() (names []string) {
	for _, p := range a.held.Snapshot().Sorted() {
		names = append(names, p.Name)
	}
	return names
}
