package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/store"
)

// follower has the status that a test gives it.
type follower struct {
	mu  sync.Mutex
	now reflector.Status
}

func (f *follower) Status() reflector.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *follower) set(s reflector.Status) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = s
}

// TestReadinessFollowsTheUpstream: a copy that was never listed is not ready. A copy without its
// upstream is ready and stale, since its last proof; each endpoint, the samples and the Warning
// header of an answer say so.
func TestReadinessFollowsTheUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := apiserver.NewServer()
		require.NoError(t, err)
		apiserver.Serve(s, builtin.Of[*corev1.ConfigMap]())
		cache, f := newCache(t), &follower{}
		apiserver.ServeCache(s, cache, builtin.Pods().View, apiserver.FilledBy(f))
		get := func(path string) *recorded {
			r := &recorded{}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			require.NoError(t, err)
			s.ServeHTTP(r, request)
			return r
		}
		text := func(code int, path string) string {
			r := get(path)
			require.Equal(t, code, r.code, path)
			return string(r.body)
		}
		value := func(metric string) float64 {
			for sample := range s.Samples("edge") {
				if sample.Metric.Name == metric && slices.Contains(sample.Labels, "pods") {
					require.Equal(t, "edge", sample.Labels[0])
					return sample.Value
				}
			}
			return -1
		}

		f.set(reflector.Status{Err: errors.New("refused"), Class: reflector.Unreachable, Since: time.Now()})
		require.Equal(t, "[+]ping ok\n[+]configmaps ok\n[-]pods failed: not listed yet (unreachable)\nreadyz check failed\n",
			text(500, "/readyz"))
		require.Equal(t, "ok", text(200, "/livez"))
		require.Equal(t, 429, get("/api/v1/pods").code)
		require.Zero(t, value("tributary_apiserver_ready"))

		proven := time.Now()
		a := pod("a")
		a.ResourceVersion = "5"
		require.NoError(t, cache.Replace(store.Items(a), store.At("5")))
		f.set(reflector.Status{Synced: true, LastContact: time.Now()})
		require.Contains(t, text(200, "/readyz?verbose"), "[+]pods stale (may_be_old)\n", "nothing has proven it yet")
		f.set(reflector.Status{Synced: true, LastContact: time.Now(), ProvenAt: proven})
		require.Equal(t, "ok", text(200, "/readyz"))
		require.Equal(t, "[+]ping ok\n[+]configmaps ok\n[+]pods ok, not proven fresh\nreadyz check passed\n", text(200, "/readyz?verbose"))
		require.Equal(t, "[+]ping ok\nlivez check passed\n", text(200, "/livez?verbose"))
		require.Empty(t, get("/api/v1/pods?resourceVersion=0").Header().Get("Warning"))
		require.EqualValues(t, 1, value("tributary_apiserver_ready"))
		require.Zero(t, value("tributary_apiserver_stale"))
		require.EqualValues(t, -1, value("tributary_apiserver_stale_since_timestamp_seconds"))

		time.Sleep(time.Minute) // of the simulated clock
		since := proven.UTC().Format(time.RFC3339)
		f.set(reflector.Status{Synced: true, LastContact: time.Now(), ProvenAt: proven, Err: errors.New("refused"), Class: reflector.Unreachable, Since: time.Now()})
		require.Equal(t, "ok", text(200, "/readyz"))
		require.Contains(t, text(200, "/readyz?verbose"), "\n[+]pods stale since "+since+" (unreachable)\n")
		for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/ns/pods/a", "/api/v1/pods?watch=1&timeoutSeconds=1"} {
			require.Equal(t, []string{`299 - "pods: stale since ` + since + ` (unreachable)"`}, get(path).Header().Values("Warning"), path)
		}
		require.Empty(t, get("/api/v1/configmaps").Header().Get("Warning"))
		require.EqualValues(t, 1, value("tributary_apiserver_stale"))
		require.EqualValues(t, proven.Unix(), int64(value("tributary_apiserver_stale_since_timestamp_seconds")))

		f.set(reflector.Status{Synced: true, LastContact: time.Now(), ProvenAt: proven})
		require.Contains(t, text(200, "/readyz?verbose"), "[+]pods ok, not proven fresh\n")
		time.Sleep(3 * time.Minute)
		require.Contains(t, text(200, "/readyz?verbose"), "[+]pods stale since "+since+" (stale)\n", "the server is heard, and proves nothing")

		// A watch that goes on, with an object that could not be decoded.
		lost := time.Now().Add(-time.Minute)
		f.set(reflector.Status{Synced: true, ProvenAt: time.Now(), Err: errors.New("bad"), Class: reflector.Undecodable, Since: lost})
		require.Equal(t, lost, s.Health()[1].Since)

		require.EqualValues(t, 5, value("apiserver_watch_cache_resource_version"), "the numbers of the cache")
		s.Close()
		require.Equal(t, "ok", text(200, "/livez"))
		require.Contains(t, text(500, "/readyz"), "[-]shutdown failed: the server is closed\n")
	})
}

// recorded is an answer.
type recorded struct {
	header http.Header
	code   int
	body   []byte
}

func (r *recorded) Header() http.Header {
	if r.header == nil {
		r.header = http.Header{}
	}
	return r.header
}
func (r *recorded) WriteHeader(code int) { r.code = code }
func (r *recorded) Write(b []byte) (int, error) {
	r.body = append(r.body, b...)
	return len(b), nil
}
func (r *recorded) Flush() {}

// TestChecksOfTheProgram: what a program needs beside its collections is a line of /readyz, with
// its error.
func TestChecksOfTheProgram(t *testing.T) {
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	defer s.Close()
	var away error
	s.AddCheck("etcd", func(context.Context) error { return away })
	ask := func() *recorded {
		r := &recorded{}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz?verbose", nil)
		require.NoError(t, err)
		s.ServeHTTP(r, request)
		return r
	}
	r := ask()
	require.Equal(t, 200, r.code)
	require.Equal(t, "[+]ping ok\n[+]etcd ok\nreadyz check passed\n", string(r.body))
	away = errors.New("no answer")
	r = ask()
	require.Equal(t, 500, r.code)
	require.Equal(t, "[+]ping ok\n[-]etcd failed: no answer\nreadyz check failed\n", string(r.body))
	require.Panics(t, func() { s.AddCheck("nothing", nil) })
}
