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

// coded gets a path in a media type, with a content coding that the client accepts; empty stands
// for the server's choice. body is what has been uncompressed.
func (r *rig) coded(t *testing.T, path, accept, coding string) (header http.Header, body []byte) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
	require.NoError(t, err)
	for name, value := range map[string]string{"Accept": accept, "Accept-Encoding": coding} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	answer, err := client.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	reader := io.Reader(answer.Body)
	if answer.Header.Get("Content-Encoding") == "gzip" {
		require.Contains(t, answer.Header.Values("Vary"), "Accept-Encoding")
		reader, err = gzip.NewReader(reader)
		require.NoError(t, err)
	}
	body, err = io.ReadAll(reader)
	require.NoError(t, err)
	return answer.Header, body
}

// TestLongAnswersAreCompressed from 128 KiB on, for clients that accept it, and never a watch.
func TestLongAnswersAreCompressed(t *testing.T) {
	r := newRig(t)
	const all = "/api/v1/pods"
	r.create(t, pod("small"))
	const codingOf = "Content-Encoding"
	header, _ := r.coded(t, all, "", "gzip")
	require.Empty(t, header.Get(codingOf), "a short list")
	for i := range 20 {
		r.create(t, pod(fmt.Sprintf("large-%d", i), func(p *corev1.Pod) { p.Spec.Hostname = strings.Repeat("x", 10<<10) }))
	}
	_, plain := r.coded(t, all, "", "")
	require.Greater(t, len(plain), 128<<10)
	for accepted, want := range map[string]string{"gzip": "gzip", "deflate, gzip": "gzip", "": "", "deflate": ""} {
		header, text := r.coded(t, all, "", accepted)
		require.Equal(t, want, header.Get(codingOf), accepted)
		require.Equal(t, plain, text, accepted)
	}
	header, events := r.coded(t, all+"?watch=1&timeoutSeconds=1", "", "gzip")
	require.Empty(t, header.Get(codingOf), "a watch")
	require.Greater(t, len(events), 128<<10)
}

// TestCompressedListsSayTheSame: lists in every format, whole and in pages, between random writes.
// What one list has compressed is a part of the next.
func TestCompressedListsSayTheSame(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t)
	formats := []string{wireJSON, wireProtobuf, wireJSON + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", wireProtobuf + ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
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
			_, plain := r.coded(t, path, accept, "identity")
			header, body := r.coded(t, path, accept, "gzip")
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
