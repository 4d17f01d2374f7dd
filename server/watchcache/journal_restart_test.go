package watchcache_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/internal/histories"
	"github.com/tributary-go/tributary/internal/stream"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

const (
	restartNodes    = 50
	restartPods     = 4 // on each node
	restarts        = 20
	restartPace     = 10 * time.Millisecond
	restartAtATime  = 20 // writes: 2,000 a second
	restartsMayLast = 2 * time.Minute
)

// relay is a process that serves a copy of the upstream, at an address that outlives it.
type relay struct {
	t        testing.TB
	upstream *listwatchtest.Collection[*corev1.Pod]
	front    *httptest.Server
	now      atomic.Pointer[apiserver.Server] // nil while no process runs
	lists    atomic.Int64                     // of clients

	folder  string
	journal *watchcache.Journal[*corev1.Pod]
	fills   *reflector.Reflector[*corev1.Pod]
	end     func()
}

func newRelay(t testing.TB, upstream *listwatchtest.Collection[*corev1.Pod]) *relay {
	r := &relay{t: t, upstream: upstream, folder: t.TempDir()}
	r.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		query := request.URL.Query()
		limit := query.Get("limit")
		probe := limit == "1" || limit == fmt.Sprint(stream.ProbePage) || strings.Contains(query.Get("fieldSelector"), "metadata.name")
		if query.Get("watch") == "" && !probe || query.Get("sendInitialEvents") == "true" {
			r.lists.Add(1)
		}
		server := r.now.Load()
		if server == nil {
			panic(http.ErrAbortHandler)
		}
		server.ServeHTTP(w, request)
	}))
	t.Cleanup(r.front.Close)
	return r
}

// begin starts a process on what its predecessor has left.
func (r *relay) begin() {
	c := newCache(r.t)
	var err error
	r.journal, err = watchcache.OpenJournal(c, r.folder, identity)
	require.NoError(r.t, err)
	require.NoError(r.t, r.journal.Status().Unused)
	r.fills = reflector.New(r.upstream.ListerWatcher(listwatch.WithMutationDetector(nil)), c, reflector.WithResume())
	server, err := apiserver.NewServer()
	require.NoError(r.t, err)
	apiserver.ServeCache(server, c, builtin.Pods().View)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.fills.Run(ctx) })
	running.Go(func() { _ = r.journal.Run(ctx) })
	r.now.Store(server)
	r.end = func() {
		r.now.Store(nil)
		r.front.CloseClientConnections()
		server.Close()
		cancel()
		running.Wait()
		c.Close()
	}
}

// kill ends the process. The next one finds the file as it was some moments before, in the middle
// of a write perhaps, when its clients had not been told everything yet.
func (r *relay) kill(cut int) {
	file, err := os.ReadFile(r.journal.Status().Path)
	require.NoError(r.t, err)
	time.Sleep(2 * restartPace) // its clients are told more
	r.end()
	r.folder = r.t.TempDir()
	require.NoError(r.t, os.WriteFile(filepath.Join(r.folder, "pods.v1.journal"), file[:len(file)-cut], 0o600))
}

// client is a reflector that reads the relay.
type client struct {
	*reflector.Reflector[*corev1.Pod]
	node    string
	copy    *store.Indexer[*corev1.Pod]
	history *histories.Recording
}

// TestARestartIsInvisible restarts a relay under 2,000 writes a second, by turns with SIGTERM and
// with kill -9. Its clients go on by their watches and miss nothing: after the first, there is no
// list any more, neither by them nor by the relay.
func TestARestartIsInvisible(t *testing.T) {
	upstream := listwatchtest.New(t, listwatchtest.Pods())
	writes := histories.Follow(upstream.Origin())
	for node := range restartNodes {
		for pod := range restartPods {
			p := stored(fmt.Sprintf("%d-%d", node, pod), 0)
			onNode(fmt.Sprintf("n%d", node))(p)
			p.ResourceVersion = ""
			upstream.Create(p)
		}
	}
	r := newRelay(t, upstream)
	r.begin()
	require.NoError(t, r.fills.WaitSynced(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	var clients []*client
	for node := range restartNodes {
		clients = append(clients, r.follow(ctx, &running, fmt.Sprintf("n%d", node)))
	}
	for _, c := range clients {
		require.NoError(t, c.WaitSynced(t.Context()))
	}
	lists := r.lists.Load()
	require.EqualValues(t, restartNodes, lists)

	writing, stopWriting := context.WithCancel(ctx)
	var written atomic.Int64
	running.Go(func() { r.write(writing, &written) })
	began := time.Now()
	for n := range restarts {
		time.Sleep(5 * restartPace)
		if n%2 == 0 {
			r.end()
		} else {
			r.kill(n)
		}
		before := written.Load()
		r.begin()
		require.NotEmpty(t, r.journal.Status().Restored)
		require.Eventually(t, func() bool { return written.Load() > before+50 && r.fills.Ready(time.Minute) == nil },
			restartsMayLast, time.Millisecond, "%v", r.fills.Status())
	}
	t.Logf("%d restarts in %s, %d writes", restarts, time.Since(began).Round(time.Millisecond), written.Load())
	stopWriting()
	for _, c := range clients {
		require.Eventually(t, func() bool { return r.has(c) }, restartsMayLast, 10*time.Millisecond, "%s: %v", c.node, c.Status())
	}
	cancel()
	running.Wait()
	r.end()
	require.Equal(t, lists, r.lists.Load(), "lists of clients, after the first")
	require.Equal(t, 1, upstreamLists(upstream), "lists of the relay")
	for _, c := range clients {
		var changes []histories.Change
		for _, change := range writes.Changes() {
			if strings.HasPrefix(change.Key, "ns/"+c.node[1:]+"-") {
				changes = append(changes, change)
			}
		}
		require.NoError(t, histories.Check(changes, c.history.History()))
	}
}

// has reports whether a client has all that the upstream has of its node.
func (r *relay) has(c *client) bool {
	for pod := range restartPods {
		key := fmt.Sprintf("ns/%s-%d", c.node[1:], pod)
		want, _ := r.upstream.Origin().Snapshot().Get(key)
		if got, ok := c.copy.Get(key); !ok || got.ResourceVersion != want.ResourceVersion {
			return false
		}
	}
	return true
}

// upstreamLists counts the lists of everything, but for probes.
func upstreamLists(upstream *listwatchtest.Collection[*corev1.Pod]) (n int) {
	for _, r := range upstream.Server().Requests() {
		watchList := r.Options.SendInitialEvents != nil && *r.Options.SendInitialEvents
		if watchList || r.Verb == listwatchtest.List && r.Options.Limit != 1 && r.Options.Limit != stream.ProbePage && r.Options.FieldSelector == "" {
			n++
		}
	}
	return n
}

// write updates pods until ctx ends.
func (r *relay) write(ctx context.Context, written *atomic.Int64) {
	pace := time.NewTicker(restartPace)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		for range restartAtATime {
			n := written.Add(1)
			node := n % restartNodes
			p := stored(fmt.Sprintf("%d-%d", node, n/restartNodes%restartPods), 0)
			p.ResourceVersion, p.UID = "", ""
			onNode(fmt.Sprintf("n%d", node))(p)
			labelled("n", fmt.Sprint(n))(p)
			if _, err := r.upstream.Origin().Update(p); err != nil {
				panic(err)
			}
		}
	}
}

// follow runs a client that reads the pods of a node.
func (r *relay) follow(ctx context.Context, running *sync.WaitGroup, node string) *client {
	config := &rest.Config{Host: r.front.URL, QPS: -1}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	clientset, err := kubernetes.NewForConfig(config)
	require.NoError(r.t, err)
	c := &client{node: node, copy: store.NewIndexer[*corev1.Pod]()}
	source := listwatch.FromClient[corev1.Pod](clientset.CoreV1().RESTClient(), "pods", listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", node)))
	var recorded store.Store[*corev1.Pod]
	recorded, c.history = histories.RecordStore(node, c.copy)
	c.Reflector = reflector.New(source, recorded, reflector.WithBackoff(10*time.Millisecond, 100*time.Millisecond))
	running.Go(func() { _ = c.Run(ctx) })
	return c
}
