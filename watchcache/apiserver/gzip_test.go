package apiserver_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestCompressedListsSayTheSame: lists in every format, whole and in pages, between random writes.
// What one list has compressed is a part of the next.
func TestCompressedListsSayTheSame(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t)
	client := http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	get := func(path, accept, coding string) (header http.Header, body []byte) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
		require.NoError(t, err)
		request.Header.Set("Accept", accept)
		request.Header.Set("Accept-Encoding", coding)
		answer, err := client.Do(request)
		require.NoError(t, err)
		defer answer.Body.Close()
		require.Equal(t, http.StatusOK, answer.StatusCode)
		reader := io.Reader(answer.Body)
		if answer.Header.Get("Content-Encoding") == "gzip" {
			reader, err = gzip.NewReader(reader)
			require.NoError(t, err)
		}
		body, err = io.ReadAll(reader)
		require.NoError(t, err)
		return answer.Header, body
	}
	formats := []string{wireJSON, wireProtobuf, wireCBOR, "application/json;as=Table;g=meta.k8s.io;v=v1", wireProtobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
	made, compressed := 0, 0
	create := func() {
		made++
		r.create(t, realistic(made*1_000_003)) // the names are in no order
	}
	for range 1000 {
		create()
	}
	for range 40 {
		for range random.IntN(5) {
			names := r.pods.Snapshot().Sorted()
			p := names[random.IntN(len(names))]
			switch random.IntN(3) {
			case 0:
				create()
			case 1:
				_, err := r.pods.Remove(p.Namespace, p.Name)
				require.NoError(t, err)
			default:
				r.relabel(t, p)
			}
		}
		path := "/api/v1/pods" + []string{"", "?limit=600", "?resourceVersion=0"}[random.IntN(3)]
		accept := formats[random.IntN(len(formats))]
		for {
			_, plain := get(path, accept, "identity")
			header, body := get(path, accept, "gzip")
			require.Equal(t, plain, body, "%s as %s", path, accept)
			if header.Get("Content-Encoding") == "gzip" {
				compressed++
			}
			var list metav1.PartialObjectMetadataList
			if accept != wireJSON || json.Unmarshal(body, &list) != nil || list.Continue == "" {
				break
			}
			path = "/api/v1/pods?limit=600&continue=" + url.QueryEscape(list.Continue)
		}
	}
	require.Greater(t, compressed, 10)
}
