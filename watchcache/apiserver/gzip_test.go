package apiserver_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestLongAnswersAreCompressed from 128 KiB on, for clients that accept it, and never a watch.
func TestLongAnswersAreCompressed(t *testing.T) {
	r := newRig(t)
	client := http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	get := func(path, accepted string) (coding, body string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
		require.NoError(t, err)
		if accepted != "" {
			request.Header.Set("Accept-Encoding", accepted)
		}
		answer, err := client.Do(request)
		require.NoError(t, err)
		defer answer.Body.Close()
		reader := io.Reader(answer.Body)
		coding = answer.Header.Get("Content-Encoding")
		if coding == "gzip" {
			require.Contains(t, answer.Header.Values("Vary"), "Accept-Encoding")
			reader, err = gzip.NewReader(reader)
			require.NoError(t, err)
		}
		text, err := io.ReadAll(reader)
		require.NoError(t, err)
		return coding, string(text)
	}
	const all = "/api/v1/pods"
	r.create(t, pod("small"))
	coding, _ := get(all, "gzip")
	require.Empty(t, coding, "a short list")
	for i := range 20 {
		r.create(t, pod(fmt.Sprintf("large-%d", i), func(p *corev1.Pod) { p.Spec.Hostname = strings.Repeat("x", 10<<10) }))
	}
	_, plain := get(all, "")
	require.Greater(t, len(plain), 128<<10)
	for accepted, want := range map[string]string{"gzip": "gzip", "deflate, gzip": "gzip", "": "", "deflate": ""} {
		coding, text := get(all, accepted)
		require.Equal(t, want, coding, accepted)
		require.Equal(t, plain, text, accepted)
	}
	coding, events := get(all+"?watch=1&timeoutSeconds=1", "gzip")
	require.Empty(t, coding, "a watch")
	require.Greater(t, len(events), 128<<10)
}
