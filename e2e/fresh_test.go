package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// clientGo is client-go's reflector on the same collection, to compare with.
type clientGo struct {
	store cache.Store
	wire  *wire
	stop  func()
}

// followAsClientGo follows pods with client-go's reflector as a program would set it up. It ends
// with the test.
func followAsClientGo(t testing.TB, config *rest.Config, node string) *clientGo {
	t.Helper()
	tap := &wire{}
	client, err := kubernetes.NewForConfig(tap.on(config))
	require.NoError(t, err)
	selector := fields.Everything()
	if node != "" {
		selector = fields.OneTermEqualSelector(nodeField, node)
	}
	pods := cache.NewStore(cache.MetaNamespaceKeyFunc)
	r := cache.NewReflectorWithOptions(cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", "", selector), &corev1.Pod{}, pods, cache.ReflectorOptions{})
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { r.RunWithContext(ctx) })
	c := &clientGo{store: pods, wire: tap, stop: func() { cancel(); done.Wait() }}
	t.Cleanup(c.stop)
	require.Eventually(t, func() bool { return r.LastSyncResourceVersion() != "" }, 30*time.Second, 10*time.Millisecond)
	return c
}

func (c *clientGo) holds(key string) bool {
	_, there, _ := c.store.GetByKey(key)
	return there
}

// awaited is one copy for whose freshness a test waits.
type awaited struct {
	name  string
	node  string // whose pods it holds; any where it holds all
	holds func(key string) bool
}

func await(f follower, node string) awaited {
	return awaited{f.name(), node, func(key string) bool { return f.find(key) != "" }}
}

// freshness writes a marker for each copy's node and measures, from the moment given, when each
// copy holds it. One that does not within limit fails the test.
func (w *world) freshness(t testing.TB, since time.Time, limit time.Duration, copies ...awaited) []time.Duration {
	t.Helper()
	keys := make([]string, len(copies))
	w.each(len(copies), func(ctx context.Context, i int) (err error) {
		keys[i], err = w.mark(ctx, copies[i].node)
		return err
	})
	took := make([]time.Duration, len(copies))
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for left := len(copies); left > 0; <-ticker.C {
		var late []string
		for i, c := range copies {
			switch {
			case took[i] > 0:
			case c.holds(keys[i]):
				took[i] = time.Since(since)
				left--
			default:
				late = append(late, c.name)
			}
		}
		require.Less(t, time.Since(since), limit, "not fresh: %q", late)
	}
	return took
}

// brief tells what requests were made, for a failed test.
func brief(log []request) (text string) {
	for _, r := range log {
		text += fmt.Sprintf("\n%s %s from %q, next page %t: ", r.at.Format("05.000"), r.kind, r.version, r.next)
		if r.answered.IsZero() {
			text += "no answer yet"
		} else {
			text += fmt.Sprintf("%d after %s %s", r.code, r.answered.Sub(r.at).Round(time.Millisecond), r.refusal)
		}
	}
	return text
}
