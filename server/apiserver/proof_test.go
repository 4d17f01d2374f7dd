package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// frozen is an upstream at version 5 that answers nothing while it is frozen.
type frozen struct {
	atomic.Bool
	asked atomic.Int32
}

func (f *frozen) Newest(ctx context.Context) (string, error) {
	f.asked.Add(1)
	if f.Load() {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return "5", nil
}

func (f *frozen) Progress(ctx context.Context, _ string) (after, until string, err error) {
	return "", "", ctx.Err()
}

// copyServed serves a copy of pod a at version 5, and returns a function that asks the server.
func copyServed(t *testing.T, f *follower, options ...watchcache.Option) (get func(path string) *recorded) {
	t.Helper()
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	t.Cleanup(s.Close)
	cache, err := watchcache.NewCache(watchcache.Pods(), options...)
	require.NoError(t, err)
	t.Cleanup(cache.Close)
	a := pod("a")
	a.ResourceVersion = "5"
	require.NoError(t, cache.Replace(store.Items(a), store.At("5")))
	f.set(reflector.Status{Synced: true, Phase: reflector.Watching, LastContact: time.Now(), ProvenAt: time.Now()})
	apiserver.ServeCache(s, cache, builtin.Pods().View, apiserver.FilledBy(f))
	return func(path string) *recorded {
		r := &recorded{}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		require.NoError(t, err)
		s.ServeHTTP(r, request)
		return r
	}
}

// TestReadsWithoutAProofAreMarked: a copy that nothing proves says so to each reader of the newest
// state. A reader that takes any version, or names one, is not told.
func TestReadsWithoutAProofAreMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		get := copyServed(t, &follower{})
		const marked = `299 - "pods: this copy is not proven fresh: it may lack the newest writes"`
		for _, path := range []string{"/api/v1/pods", "/api/v1/pods?limit=1", "/api/v1/namespaces/ns/pods/a", "/api/v1/pods?watch=1&timeoutSeconds=1"} {
			r := get(path)
			require.NotEqual(t, 503, r.code, path)
			require.Equal(t, []string{marked}, r.Header().Values("Warning"), path)
		}
		for _, path := range []string{"/api/v1/pods?resourceVersion=0", "/api/v1/pods?resourceVersion=5", "/api/v1/pods?watch=1&resourceVersion=5&timeoutSeconds=1"} {
			require.Empty(t, get(path).Header().Values("Warning"), path)
		}
		require.Contains(t, string(get("/readyz?verbose").body), "[+]pods ok, not proven fresh\n")
	})
	synctest.Test(t, func(t *testing.T) {
		s, err := apiserver.NewServer()
		require.NoError(t, err)
		defer s.Close()
		apiserver.Serve(s, builtin.Of[*corev1.ConfigMap]())
		r := &recorded{}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/configmaps", nil)
		require.NoError(t, err)
		s.ServeHTTP(r, request)
		require.Empty(t, r.Header().Values("Warning"), "the server is the origin")
	})
}

// TestAFailingProofIsLoud: four seconds after its upstream has frozen, no copy gives an answer that
// looks healthy, though its follower has noticed nothing. All is well soon after the upstream
// answers again.
func TestAFailingProofIsLoud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &frozen{}
		get := copyServed(t, &follower{}, watchcache.WithUpstream(up))
		healthy := func() {
			t.Helper()
			for _, path := range []string{"/api/v1/pods", "/api/v1/pods?resourceVersion=0", "/readyz"} {
				r := get(path)
				require.Less(t, r.code, 300, "%s: %s", path, r.body)
				require.Empty(t, r.Header().Values("Warning"), path)
			}
			require.Contains(t, string(get("/readyz?verbose").body), "[+]pods ok\n")
		}
		healthy()
		up.Store(true)
		began := time.Now()
		for time.Since(began) < 20*time.Second {
			asked := time.Since(began)
			list, old, ready := get("/api/v1/pods"), get("/api/v1/pods?resourceVersion=0"), get("/readyz")
			require.Equal(t, http.StatusGatewayTimeout, list.code)
			if asked < 4*time.Second {
				continue
			}
			require.Contains(t, old.Header().Get("Warning"), "pods: stale since ", "an old copy is given, and said to be old")
			require.Equal(t, http.StatusInternalServerError, ready.code)
			require.Contains(t, string(ready.body), "[-]pods failed: stale since ")
			require.Contains(t, string(ready.body), "(silent)")
			require.Equal(t, http.StatusOK, get("/livez").code)
			time.Sleep(300 * time.Millisecond)
		}
		up.Store(false)
		time.Sleep(13 * time.Second) // the last question that was lost, and the age of its answer
		require.Equal(t, http.StatusOK, get("/readyz").code)
		healthy()
	})
}

// TestAWatchThatGoesOnAsksNothing: the upstream has no question for each client that comes back, as
// it has for one that begins with an old state. The client is told if the copy's follower fails.
func TestAWatchThatGoesOnAsksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, f := &frozen{}, &follower{}
		get := copyServed(t, f, watchcache.WithUpstream(up))
		watch := func(query string) *recorded {
			t.Helper()
			time.Sleep(time.Minute)
			r := get("/api/v1/pods?watch=1&timeoutSeconds=1&" + query)
			require.Equal(t, http.StatusOK, r.code)
			return r
		}
		for range 10 {
			f.set(reflector.Status{Synced: true, Phase: reflector.Watching, LastContact: time.Now(), ProvenAt: time.Now()})
			require.Empty(t, watch("resourceVersion=5").Header().Values("Warning"))
		}
		require.Zero(t, up.asked.Load())
		watch("resourceVersion=0")
		watch("resourceVersion=5&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
		require.EqualValues(t, 2, up.asked.Load())
		f.set(reflector.Status{Synced: true, Phase: reflector.Waiting, Class: reflector.Unreachable, Err: errors.New("cut"), Since: time.Now()})
		require.Contains(t, watch("resourceVersion=5").Header().Get("Warning"), "pods: stale")
		require.EqualValues(t, 2, up.asked.Load())
	})
}

// TestReadinessAsksTheUpstream: a server that nobody reads notices by its readiness checks.
func TestReadinessAsksTheUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &frozen{}
		get := copyServed(t, &follower{}, watchcache.WithUpstream(up))
		require.Equal(t, http.StatusOK, get("/readyz").code)
		up.Store(true)
		time.Sleep(10 * time.Second)
		began := time.Now()
		require.Equal(t, http.StatusInternalServerError, get("/readyz").code)
		require.Equal(t, 3*time.Second, time.Since(began))
	})
}
