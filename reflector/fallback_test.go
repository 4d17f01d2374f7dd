package reflector_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	cachetesting "k8s.io/client-go/tools/cache/testing"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// fronted is a copy of an API server, over HTTP, behind a handler of the test.
type fronted struct {
	pods  *listwatchtest.Origin[*corev1.Pod]
	store *store.Indexer[*corev1.Pod]
	*reflector.Reflector[*corev1.Pod]
}

// front runs a reflector on a server, some of whose requests the test answers itself: those for
// which answer is true.
func front(t *testing.T, answer func(http.ResponseWriter, *http.Request) bool, options ...reflector.Option) *fronted {
	t.Helper()
	api := listwatchtest.NewServer(t)
	f := &fronted{pods: listwatchtest.Serve(api, listwatchtest.Pods()).Origin(), store: store.NewIndexer[*corev1.Pod]()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			api.ServeHTTP(w, r)
		}
	}))
	transport := &http.Transport{}
	client, err := listwatch.NewRESTClient(&rest.Config{Host: server.URL, QPS: -1, Transport: transport}, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	f.Reflector = reflector.New(listwatch.FromClient[corev1.Pod](client, "pods"), f.store, options...)
	f.create(t, "first")
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = f.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		api.Origin().Close()
		transport.CloseIdleConnections()
		server.Close()
	})
	return f
}

func (f *fronted) create(t *testing.T, name string) {
	t.Helper()
	_, err := f.pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	require.NoError(t, err)
}

func (f *fronted) holds(name string) bool {
	_, ok := f.store.Snapshot().Get("default/" + name)
	return ok
}

// syncsWithin is more than a loaded machine needs. A test that permits no backoff makes it longer.
const syncsWithin = time.Minute

func withoutBackoff() reflector.Option { return reflector.WithBackoff(time.Hour, time.Hour) }

func (f *fronted) requireSynced(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), syncsWithin)
	defer cancel()
	require.NoError(t, f.WaitSynced(ctx))
	require.True(t, f.holds("first"))
}

func isWatchList(r *http.Request) bool { return r.URL.Query().Get("sendInitialEvents") == "true" }
func isWatch(r *http.Request) bool     { return r.URL.Query().Get("watch") == "true" }

// refuse answers with a Status, as an API server does.
func refuse(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"message":"refused by the test"}`, code)
}

// Whatever a watch list is answered with, a LIST follows at once, and what happens then comes by a
// watch.
func TestFailedWatchListBecomesAList(t *testing.T) {
	for _, code := range []int{400, 401, 403, 404, 405, 500, 501, 502, 503, 504} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			f := front(t, func(w http.ResponseWriter, r *http.Request) bool {
				if isWatchList(r) {
					refuse(w, code)
				}
				return isWatchList(r)
			}, withoutBackoff())
			f.requireSynced(t)
			f.create(t, "second")
			require.Eventually(t, func() bool { return f.holds("second") }, syncsWithin, time.Millisecond)
			require.NoError(t, f.Status().Err)
			require.Equal(t, map[reflector.Class]int{reflector.OK: 1}, f.Status().Lists)
		})
	}
}

// client-go's public fake answers a watch list with an error that is no Status.
func TestFakeControllerSourceIsSynced(t *testing.T) {
	source := cachetesting.NewFakeControllerSource()
	defer source.Shutdown()
	source.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}})
	pods := store.NewIndexer[*corev1.Pod]()
	r := reflector.New(listwatch.FromClientGo[*corev1.Pod](source), pods, withoutBackoff())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	short, done := context.WithTimeout(ctx, syncsWithin)
	defer done()
	require.NoError(t, r.WaitSynced(short))
	source.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "second"}})
	require.Eventually(t, func() bool { return pods.Snapshot().Len() == 2 }, syncsWithin, time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}

// A role with list and without watch: lists keep the copy, and Status goes on saying that it cannot
// watch, until it can.
func TestListAloneKeepsTheCopy(t *testing.T) {
	var granted atomic.Bool
	f := front(t, func(w http.ResponseWriter, r *http.Request) bool {
		if isWatch(r) && !granted.Load() {
			refuse(w, http.StatusForbidden)
			return true
		}
		return false
	})
	f.requireSynced(t)
	f.create(t, "second")
	require.Eventually(t, func() bool { return f.holds("second") }, time.Minute, time.Millisecond)
	status := f.Status()
	require.Equal(t, reflector.Forbidden, status.Class)
	require.ErrorContains(t, status.Err, "refused by the test")
	require.NotZero(t, status.Lists[reflector.Forbidden])
	granted.Store(true)
	require.Eventually(t, func() bool { return f.Status().Class == reflector.OK }, time.Minute, time.Millisecond)
	listed := f.Status().Lists[reflector.Forbidden]
	f.create(t, "third")
	require.Eventually(t, func() bool { return f.holds("third") }, syncsWithin, time.Millisecond)
	require.Equal(t, listed, f.Status().Lists[reflector.Forbidden], "it came by the watch")
}

// Retry-After is bounded, whoever says it, and Status says until when it is waited and why.
func TestRetryAfterIsBounded(t *testing.T) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			f := front(t, func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Retry-After", "1000000000")
				http.Error(w, "later", code)
				return true
			})
			requireBounded(t, f)
		})
	}
	t.Run("ERROR event", func(t *testing.T) {
		f := front(t, func(w http.ResponseWriter, r *http.Request) bool {
			if !isWatch(r) || isWatchList(r) {
				if isWatchList(r) {
					refuse(w, http.StatusBadRequest)
				}
				return isWatchList(r)
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,`+
				`"reason":"TooManyRequests","details":{"retryAfterSeconds":1000000000}}}`)
			return true
		})
		requireBounded(t, f)
	})
}

func requireBounded(t *testing.T, f *fronted) {
	t.Helper()
	require.Eventually(t, func() bool { return !f.Status().RetryAt.IsZero() && f.Status().RetryAfter > 0 }, time.Minute, time.Millisecond)
	s := f.Status()
	require.Equal(t, reflector.Waiting, s.Phase)
	require.Equal(t, 1e9*time.Second, s.RetryAfter)
	require.Greater(t, time.Until(s.RetryAt), 4*time.Minute)
	require.Less(t, time.Until(s.RetryAt), 6*time.Minute)
	require.Error(t, s.Err)
	require.Contains(t, s.String(), "next request at "+s.RetryAt.Format(time.TimeOnly)+" (the server asked to wait 277777h46m40s)")
}

// client-go reads its switches from the environment once per process, so this test runs itself with
// the switch set.
func TestWatchListClientSwitch(t *testing.T) {
	const child = "TRIBUTARY_TEST_WATCH_LIST_SWITCH"
	if os.Getenv(child) == "" {
		command := exec.Command(os.Args[0], "-test.run=^TestWatchListClientSwitch$", "-test.v")
		command.Env = append(os.Environ(), child+"=1", "KUBE_FEATURE_WatchListClient=false")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return
	}
	var watchLists atomic.Int32
	f := front(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if isWatchList(r) {
			watchLists.Add(1)
		}
		return false
	})
	f.requireSynced(t)
	require.Zero(t, watchLists.Load())
}
