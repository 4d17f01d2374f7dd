package apiserver_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/server/watchcache"
)

// endingWriter is an answer whose stream ends in a write, as in HTTP/2: the write returns, and its
// bytes may still be read.
type endingWriter struct {
	header      http.Header
	good        int // how many writes come before
	taken, were []byte
}

func (w *endingWriter) Header() http.Header { return w.header }

func (w *endingWriter) WriteHeader(int) {}

func (w *endingWriter) FlushError() error { return nil }

func (w *endingWriter) SetWriteDeadline(time.Time) error { return nil }

func (w *endingWriter) Write(p []byte) (int, error) {
	if w.good--; w.good >= 0 {
		return len(p), nil
	}
	if w.taken == nil {
		w.taken, w.were = p, bytes.Clone(p)
	}
	return 0, errors.New("the stream has ended")
}

// TestMemoryOfAnEndedStreamIsNotUsedAgain: else parts of another client's answer would go out in a
// frame of the ended stream.
func TestMemoryOfAnEndedStreamIsNotUsedAgain(t *testing.T) {
	r := newRig(t, watchcache.WithListBytes(0))
	random := rand.NewChaCha8([32]byte{})
	for i := range 3 { // large ones are written alone, and then small ones at once
		for name, bytes := range map[string]int{"large": 160 << 10, "small": 4 << 10} {
			p := pod(fmt.Sprintf("%s-%d", name, i))
			p.Annotations = map[string]string{"text": text(random, bytes)}
			r.create(t, p)
		}
	}
	serve := func(path, coding string, good int) *endingWriter {
		for _, p := range r.pods.Snapshot().Sorted() {
			p = p.DeepCopy()
			p.Annotations["text"] = text(random, len(p.Annotations["text"]))
			_, err := r.pods.Update(p)
			require.NoError(t, err)
		}
		w := &endingWriter{header: http.Header{}, good: good}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		request.Header.Set("Accept-Encoding", coding)
		func() {
			defer func() { _ = recover() }() // http.ErrAbortHandler
			r.ServeHTTP(w, request)
		}()
		return w
	}
	for _, path := range []string{
		"/api/v1/pods", "/api/v1/namespaces/default/pods?limit=1", "/api/v1/namespaces/default/pods/large-0",
		"/api/v1/pods?watch=1&resourceVersion=0",
	} {
		for _, coding := range []string{"identity", "gzip"} {
			for good := range 4 {
				first := serve(path, coding, good)
				for range 3 {
					_ = serve(path, coding, good)
				}
				require.Equal(t, string(first.were), string(first.taken), "%s, %s, %d writes", path, coding, good)
			}
		}
	}
}

// text is not much shorter when it is compressed.
func text(random *rand.ChaCha8, bytes int) string {
	raw := make([]byte, bytes/2)
	_, _ = random.Read(raw)
	return fmt.Sprintf("%x", raw)
}
