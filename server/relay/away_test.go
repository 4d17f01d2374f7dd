package relay_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheUpstreamIsAway: reads of the newest state fail, old ones are marked, requests that the
// upstream must answer say so, and discovery goes on. All is well when it comes back.
func TestTheUpstreamIsAway(t *testing.T) {
	g := newRig(t)
	g.upstream.inhabited(t)
	documents := []string{"/api", "/apis", "/api/v1", "/apis/apps/v1", "/openapi/v3", "/version"}
	for _, path := range append(documents, "/api/v1/pods") {
		require.Equal(t, http.StatusOK, get(t, g.url+path).code, path)
	}
	require.Equal(t, http.StatusOK, get(t, g.url+"/readyz").code)
	g.upstream.down()

	newest := get(t, g.url+"/api/v1/pods")
	require.Contains(t, []int{http.StatusServiceUnavailable, http.StatusGatewayTimeout}, newest.code)
	old := get(t, g.url+"/api/v1/pods?resourceVersion=0")
	require.Equal(t, http.StatusOK, old.code)
	require.Len(t, names(t, old.body), 12)
	require.Contains(t, old.header.Get("Warning"), "pods: stale since")
	for _, path := range []string{"/api/v1/namespaces/ns/pods/pod-0/log", "/apis/batch/v1", "/api/v1/configmaps"} {
		passed := get(t, g.url+path)
		require.Contains(t, []int{http.StatusServiceUnavailable, http.StatusGatewayTimeout}, passed.code, path)
		require.Contains(t, passed.body, `"kind":"Status"`)
		require.Contains(t, passed.body, "http://"+g.upstream.address)
		require.NotContains(t, passed.body, relayToken)
		require.NotContains(t, passed.body, clientToken)
	}
	admitted := g.admitted.Load()
	for _, path := range documents {
		kept := get(t, g.url+path)
		require.Equal(t, http.StatusOK, kept.code, path)
		require.Contains(t, kept.header.Get("Warning"), "the upstream does not answer")
		require.True(t, strings.HasPrefix(kept.header.Get("Content-Type"), "application/json"))
	}
	require.Equal(t, admitted+int64(len(documents)), g.admitted.Load(), "the access control is asked")
	ready := get(t, g.url+"/readyz")
	require.Equal(t, http.StatusInternalServerError, ready.code)
	require.Contains(t, ready.body, "[-]upstream failed: http://"+g.upstream.address)
	require.Contains(t, ready.body, "[-]pods failed: stale since")
	require.Equal(t, http.StatusOK, get(t, g.url+"/livez").code)

	g.upstream.up(t)
	require.Eventually(t, func() bool { return get(t, g.url+"/readyz").code == http.StatusOK }, time.Minute, 50*time.Millisecond)
	again := get(t, g.url+"/api")
	require.Empty(t, again.header["Warning"])
	require.Equal(t, http.StatusOK, get(t, g.url+"/api/v1/configmaps").code)
	require.Len(t, names(t, get(t, g.url+"/api/v1/pods").body), 12)
}

// TestAStartWithoutTheUpstream: the first reader is told why there is no copy, and a later one
// reads.
func TestAStartWithoutTheUpstream(t *testing.T) {
	g := newRig(t)
	g.upstream.inhabited(t)
	g.upstream.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/pods") {
			return false
		}
		http.Error(w, "etcd is away", http.StatusInternalServerError)
		return true
	})
	answer := get(t, g.url+"/api/v1/pods")
	require.Equal(t, http.StatusGatewayTimeout, answer.code)
	require.Contains(t, answer.body, "server_error")
	require.Empty(t, answer.header.Get("Retry-After"))
	g.upstream.answers(nil)
	require.Eventually(t, func() bool { return get(t, g.url+"/api/v1/pods").code == http.StatusOK }, time.Minute, 50*time.Millisecond)
}

// TestShutdownLeavesNothing: watches end properly, streams that are passed on are cut, and new
// requests are refused. The leak check of the package sees what is left.
func TestShutdownLeavesNothing(t *testing.T) {
	g := newRig(t)
	g.upstream.inhabited(t)
	streaming := make(chan struct{})
	g.upstream.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		_, _ = io.WriteString(w, "one\n")
		_ = http.NewResponseController(w).Flush()
		close(streaming)
		<-r.Context().Done()
		return true
	})
	watch, err := http.Get(g.url + "/api/v1/pods?watch=true&resourceVersion=0")
	require.NoError(t, err)
	defer watch.Body.Close()
	passedOn, err := http.Get(g.url + "/api/v1/pods?watch=true&resourceVersion=0&of=another-kind")
	require.NoError(t, err)
	defer passedOn.Body.Close()
	logs, err := http.Get(g.url + "/api/v1/namespaces/ns/pods/a/log?follow=true")
	require.NoError(t, err)
	defer logs.Body.Close()
	<-streaming
	events := bufio.NewReader(watch.Body)
	for range 12 {
		_, err := events.ReadString('\n')
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, g.Shutdown(ctx))
	rest, err := io.ReadAll(events)
	require.NoError(t, err, "the watch has a proper end")
	require.Empty(t, rest)
	_, err = io.ReadAll(passedOn.Body)
	require.NoError(t, err, "and so has one that is passed on")
	_, err = io.ReadAll(logs.Body)
	require.Error(t, err)
	refused := get(t, g.url+"/api/v1/pods")
	require.Equal(t, http.StatusServiceUnavailable, refused.code)
	require.Equal(t, "1", refused.header.Get("Retry-After"), "a reflector of client-go lists again without it")
	require.Equal(t, http.StatusInternalServerError, get(t, g.url+"/readyz").code)
	require.NoError(t, g.Shutdown(ctx), "again")
}
