package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/store"
)

// TestRelayRestartIsInvisible: reflectors of client-go, each with the pods of a node, read through
// a relay that is restarted 20 times under writes: every other time it is killed. No reflector
// lists again, but for a few whose watch had begun milliseconds before a kill. The relay never
// reads the collection again, and each reflector is told each change once, in order.
func TestRelayRestartIsInvisible(t *testing.T) {
	clients, restarts, rate := 100, 6, 1000
	if full {
		clients, restarts, rate = 500, 20, 2000
	}
	audit := cluster.NewAudit(t)
	c := cluster.Start(t, audit.Flags()...)
	w := newWorld(t, c)
	c.AllowRelay()
	binary, err := tributary()
	require.NoError(t, err)
	r := c.StartRelay(binary, c.Server.Config(cluster.Agent), "--data="+t.TempDir())
	w.grantAccount(t, "reader")
	token := c.AccountToken(w.account(t, "reader"), time.Now().Add(time.Hour))
	nodeOf := func(i int) string { return fmt.Sprintf("node-%03d", i%clients) }
	pods := 2 * clients
	w.each(pods, func(ctx context.Context, i int) error {
		_, err := w.client.CoreV1().Pods("default").Create(ctx, smallPod(podName(i), nodeOf(i)), metav1.CreateOptions{})
		return err
	})
	truth := w.watchAll(t)
	var all []*told
	for i := range clients {
		all = append(all, w.reflect(t, r, token, nodeOf(i)))
	}
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(all, func(one *told) bool { return one.replaced() == 0 })
	}, 2*time.Minute, 20*time.Millisecond, "first sync")
	for _, one := range all {
		one.first = one.collected()
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var written, failed atomic.Int64
	var writing sync.WaitGroup
	ticks := time.NewTicker(time.Second / time.Duration(rate))
	defer ticks.Stop()
	for n := range 32 {
		writing.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 0))
			for ctx.Err() == nil {
				select {
				case <-ctx.Done():
					return
				case <-ticks.C:
				}
				if w.writeOne(ctx, random.IntN(pods), nodeOf, random.IntN(20)) == nil {
					written.Add(1)
				} else {
					failed.Add(1)
				}
			}
		})
	}
	began := time.Now()
	var away time.Duration
	for n := range restarts {
		pass(time.Second + rand.N(time.Second))
		ends := time.Now()
		if n%2 == 0 {
			r.Kill()
		} else {
			r.Stop()
		}
		away += r.Restart().Sub(ends)
	}
	pass(2 * time.Second)
	took := time.Since(began)
	stop()
	writing.Wait()
	last := truth.settle(t, w)
	told := func(one *told) bool { return one.again() > 0 || one.count() >= len(truth.ofNode(one.node)) }
	for _, one := range all { // one that lists again is told less
		require.Eventually(t, func() bool { return told(one) }, 2*time.Minute, 20*time.Millisecond, one)
	}
	pass(time.Second) // for what is told twice
	cut := 0
	for _, one := range all {
		if one.again() == 0 {
			require.Equal(t, truth.ofNode(one.node), one.changes(), one)
			continue
		}
		require.LessOrEqual(t, one.again(), one.tooShort(), one)
		cut += one.again()
	}
	asked := audit.Collected(cluster.AgentUser, "pods")
	passed := audit.Collected("system:serviceaccount:default:reader", "pods")
	t.Logf("%d clients; %d writes in %s (%d a second), %d failed; %d restarts, away for %s each; up to version %s; the clients collected %d times again, the relay read the collection %d times",
		clients, written.Load(), took.Round(time.Second), int(float64(written.Load())/took.Seconds()), failed.Load(), restarts,
		(away / time.Duration(restarts)).Round(10*time.Millisecond), last, cut, len(asked))
	require.LessOrEqual(t, cut, clients*restarts/1000, "lists after a watch that was cut before its first event")
	require.Len(t, asked, 1, "the relay reads the collection once: %v", asked)
	require.Empty(t, passed, "collections of clients that the relay has passed on")
}

// smallPod is a pod that is cheap to write.
func smallPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	}
}

// writeOne changes a pod, or deletes it and creates it anew.
func (w *world) writeOne(ctx context.Context, i int, nodeOf func(int) string, kind int) error {
	pods := w.client.CoreV1().Pods("default")
	if kind > 0 {
		_, err := pods.Patch(ctx, podName(i), mergePatch, roundPatch(rand.Int()), metav1.PatchOptions{})
		return err
	}
	if err := pods.Delete(ctx, podName(i), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		return err
	}
	_, err := pods.Create(ctx, smallPod(podName(i), nodeOf(i)), metav1.CreateOptions{})
	return err
}

// told is a store that keeps what a reflector of client-go tells it.
type told struct {
	node  string
	wire  *wire
	first int // lists of the first sync

	mu       sync.Mutex // guards the next fields
	all      []change
	replaces int
	log      []string // the reflector's own
}

// String has the requests of the reflector, and its log.
func (s *told) String() string {
	text := fmt.Sprintf("%s, told of %d changes:%s", s.node, s.count(), brief(s.wire.log()))
	s.mu.Lock()
	defer s.mu.Unlock()
	return text + "\n" + strings.Join(s.log, "\n")
}

// again are the lists after the first sync.
func (s *told) again() int { return s.collected() - s.first }

// tooShort are the watches that were cut within milliseconds of their beginning. A reflector of
// client-go lists again after them, whatever the server does.
func (s *told) tooShort() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.log {
		if strings.Contains(line, "very short watch") {
			n++
		}
	}
	return n
}

// reflect starts a reflector of client-go for the pods of a node, as a program would set it up.
func (w *world) reflect(t testing.TB, r *cluster.Relay, token, node string) *told {
	t.Helper()
	s := &told{node: node, wire: &wire{}}
	config := s.wire.on(r.Config(token))
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := corev1client.NewForConfig(config)
	require.NoError(t, err)
	lw := cache.NewListWatchFromClient(client.RESTClient(), "pods", "", fields.OneTermEqualSelector(nodeField, node))
	reading := cache.NewReflectorWithOptions(lw, &corev1.Pod{}, s, cache.ReflectorOptions{})
	logger := funcr.New(func(prefix, args string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = append(s.log, time.Now().Format("05.000 ")+args)
	}, funcr.Options{Verbosity: 4})
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logger))
	var done sync.WaitGroup
	done.Go(func() { reading.RunWithContext(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
	return s
}

func (s *told) note(kind watch.EventType, obj any) error {
	pod := obj.(*corev1.Pod)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, change{kind, store.KeyOf(pod), pod.ResourceVersion})
	return nil
}

func (s *told) Add(obj any) error    { return s.note(watch.Added, obj) }
func (s *told) Update(obj any) error { return s.note(watch.Modified, obj) }
func (s *told) Delete(obj any) error { return s.note(watch.Deleted, obj) }
func (s *told) Resync() error        { return nil }

func (s *told) Replace([]any, string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replaces++
	return nil
}

func (s *told) replaced() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replaces
}

func (s *told) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

func (s *told) changes() []change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// collected are the lists and watch lists that were sent.
func (s *told) collected() (n int) {
	for _, r := range s.wire.log() {
		if r.kind != watches && !r.next {
			n++
		}
	}
	return n
}

// everything is what the API server tells of all pods.
type everything struct {
	mu      sync.Mutex // guards the next fields
	byNode  map[string][]change
	version uint64
	failed  error
}

// watchAll watches all pods at the API server, from now on.
func (w *world) watchAll(t testing.TB) *everything {
	t.Helper()
	list, err := w.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	e := &everything{byNode: map[string][]change{}, version: versionNumber(list.ResourceVersion)}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil && e.follow(ctx, w) { // the server closes a watch that is slow
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return e
}

// follow watches from the last version on, and reports whether it may be called again.
func (e *everything) follow(ctx context.Context, w *world) bool {
	stream, err := w.client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: fmt.Sprint(e.at())})
	if err != nil {
		return true
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		if !e.take(event) {
			return false
		}
	}
	return true
}

func (e *everything) at() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.version
}

func (e *everything) take(event watch.Event) (ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		e.failed = fmt.Errorf("the API server's watch: %v", event.Object)
		return false
	}
	e.byNode[pod.Spec.NodeName] = append(e.byNode[pod.Spec.NodeName], change{event.Type, store.KeyOf(pod), pod.ResourceVersion})
	e.version = versionNumber(pod.ResourceVersion)
	return true
}

// settle waits until all that was written has been told, and returns the version of it.
func (e *everything) settle(t testing.TB, w *world) string {
	t.Helper()
	made, err := w.client.CoreV1().Pods("default").Create(t.Context(), smallPod("the-last-one", "no-node"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.failed != nil || e.version >= versionNumber(made.ResourceVersion)
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, e.failed)
	return made.ResourceVersion
}

func (e *everything) ofNode(node string) []change {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.byNode[node])
}
