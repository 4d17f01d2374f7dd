package apiserver_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
)

// gated reads no answer to a watch while the gate is shut.
type gated struct {
	http.RoundTripper
	open <-chan struct{}
}

func (g gated) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := g.RoundTripper.RoundTrip(r)
	if err == nil && r.URL.Query().Get("watch") != "" {
		answer.Body = gatedBody{answer.Body, g.open}
	}
	return answer, err
}

type gatedBody struct {
	io.ReadCloser
	open <-chan struct{}
}

func (b gatedBody) Read(p []byte) (int, error) {
	<-b.open
	return b.ReadCloser.Read(p)
}

// watchersOf counts the watches of pods that wait for events.
func watchersOf(r *rig) (n int) {
	for sample := range r.pods.Cache().Samples("test") {
		if sample.Metric.Name == "tributary_watch_cache_watchers" {
			n = int(sample.Value)
		}
	}
	return n
}

// TestADifferenceOverHTTP: a reflector that has stopped to read for longer than the window lasts is
// told the difference, and lists no second time. One that does not permit that lists again.
func TestADifferenceOverHTTP(t *testing.T) {
	for _, media := range []string{wireProtobuf, wireJSON} {
		for name, permits := range map[string]bool{"permitted": true, "not permitted": false} {
			t.Run(media+" "+name, func(t *testing.T) {
				origin := newRig(t, watchcache.WithWindowBytes(1<<20))
				fat := pod("fat")
				fat.Annotations = map[string]string{"text": strings.Repeat("x", 128<<10)}
				last := origin.create(t, pod("goes"), fat)
				open := make(chan struct{})
				config := origin.config(t, media)
				config.WrapTransport = func(t http.RoundTripper) http.RoundTripper { return gated{t, open} }
				client, err := kubernetes.NewForConfig(rest.CopyConfig(config))
				require.NoError(t, err)
				options := []listwatch.Option{listwatch.WithoutWatchList()}
				if media == wireJSON {
					options = append(options, listwatch.WithJSON())
				}
				permitted := []reflector.Option{}
				if permits {
					permitted = append(permitted, reflector.WithDifferences())
				}
				indexer := store.NewIndexer[*corev1.Pod]()
				r := reflector.New(listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods", options...), indexer, permitted...)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- r.Run(ctx) }()
				defer func() { stop(); require.NoError(t, <-done) }()
				require.NoError(t, r.WaitSynced(ctx))
				eventually(t, func() bool { return watchersOf(origin) == 1 }, "a watch")

				for i := range 250 { // more than the buffers of a connection hold
					next := last.DeepCopy()
					next.Labels = map[string]string{"i": fmt.Sprint(i)}
					last, err = origin.pods.Update(next)
					require.NoError(t, err)
				}
				_, err = origin.pods.Remove("ns", "goes")
				require.NoError(t, err)
				last = origin.create(t, pod("comes"))
				close(open)
				eventually(t, func() bool { return indexer.Snapshot().ResourceVersion() == last.ResourceVersion }, "the last version")
				_, gone := indexer.Get("ns/goes")
				require.False(t, gone)
				lists := 0
				for _, n := range r.Status().Lists {
					lists += n
				}
				require.Equal(t, map[bool]int{true: 1, false: 2}[permits], lists)
			})
		}
	}
}
