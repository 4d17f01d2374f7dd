package apiserver_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
)

// rawWatch is a watch as bytes.
type rawWatch struct {
	t    testing.TB
	body *bufio.Reader
}

func (r *rig) watch(t testing.TB, query, accept string) *rawWatch {
	t.Helper()
	return r.watchPath(t, "/api/v1/pods?watch=1&"+query, accept)
}

func (r *rig) watchPath(t testing.TB, path, accept string) *rawWatch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+path, nil)
	require.NoError(t, err)
	request.Header.Set("Accept", accept)
	answer, err := r.web.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() {
		cancel()
		answer.Body.Close()
	})
	require.Equal(t, http.StatusOK, answer.StatusCode)
	want := wireJSON
	if strings.HasPrefix(accept, wireProtobuf) {
		want = wireProtobuf + ";stream=watch"
	}
	require.Equal(t, want, answer.Header.Get("Content-Type"))
	return &rawWatch{t, bufio.NewReader(answer.Body)}
}

func (w *rawWatch) json() (e metav1.WatchEvent) {
	w.t.Helper()
	line, err := w.body.ReadBytes('\n')
	require.NoError(w.t, err)
	require.NoError(w.t, json.Unmarshal(line, &e))
	return e
}

func (w *rawWatch) protobuf() (e metav1.WatchEvent) {
	w.t.Helper()
	var length [4]byte
	_, err := io.ReadFull(w.body, length[:])
	require.NoError(w.t, err)
	frame := make([]byte, binary.BigEndian.Uint32(length[:]))
	_, err = io.ReadFull(w.body, frame)
	require.NoError(w.t, err)
	require.NoError(w.t, e.Unmarshal(frame))
	return e
}

func (w *rawWatch) requireEnd() {
	w.t.Helper()
	_, err := w.body.ReadByte()
	require.ErrorIs(w.t, err, io.EOF)
}

func TestWatchFrames(t *testing.T) { overBothProtocols(t, checkWatchFrames) }

func checkWatchFrames(t *testing.T, newRig func(testing.TB, ...watchcache.Option) *rig) {
	r := newRig(t)
	a := r.create(t, pod("a", labelled("app", "web")))
	query := "resourceVersion=1&timeoutSeconds=20"
	e := r.watch(t, query, wireJSON).json()
	require.Equal(t, "ADDED", e.Type)
	require.Contains(t, string(e.Object.Raw), `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"`)
	var got corev1.Pod
	require.NoError(t, json.Unmarshal(e.Object.Raw, &got))
	require.Equal(t, a.UID, got.UID)

	for _, accept := range []string{wireProtobuf, wireProtobuf + ";stream=watch"} {
		e := r.watch(t, query, accept).protobuf()
		require.Equal(t, "ADDED", e.Type)
		require.Equal(t, a.UID, decodeProtobuf(t, e.Object.Raw).(*corev1.Pod).UID)
	}

	const meta = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	e = r.watch(t, query, wireProtobuf+meta).protobuf()
	var envelope runtime.Unknown
	require.NoError(t, envelope.Unmarshal(e.Object.Raw[4:]))
	require.Equal(t, runtime.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, envelope.TypeMeta)
	var partial metav1.PartialObjectMetadata
	require.NoError(t, partial.Unmarshal(envelope.Raw))
	require.Equal(t, "web", partial.Labels["app"])

	var table metav1.Table
	e = r.watch(t, query, "application/json;as=Table;g=meta.k8s.io;v=v1").json()
	require.NoError(t, json.Unmarshal(e.Object.Raw, &table))
	require.Equal(t, "a", table.Rows[0].Cells[0])
}

// counted counts how often it is encoded.
type counted struct{ corev1.Secret }

var encoded atomic.Int32

func (c *counted) MarshalJSON() ([]byte, error) {
	encoded.Add(1)
	return json.Marshal(&c.Secret)
}

func (c *counted) DeepCopyObject() runtime.Object {
	return &counted{*c.Secret.DeepCopy()}
}

// TestFramesAreShared by all watches of a format.
func TestFramesAreShared(t *testing.T) {
	r := newRig(t)
	collection := apiserver.Serve(r.Server, apiserver.Resource[*counted]{
		Kind: watchcache.Kind[*counted]{Version: "v1", Plural: "secrets", Kind: "Secret"},
	})
	var watches []*rawWatch
	for range 3 {
		watches = append(watches, r.watchPath(t, "/api/v1/secrets?watch=1&resourceVersion=1", wireJSON))
	}
	before := encoded.Load()
	_, err := collection.Create(&counted{corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}})
	require.NoError(t, err)
	for _, w := range watches {
		require.Equal(t, "ADDED", w.json().Type)
	}
	require.EqualValues(t, 1, encoded.Load()-before)
}

func TestWatchErrorsComeInsideTheStream(t *testing.T) {
	overBothProtocols(t, checkWatchErrorsComeInsideTheStream)
}

func checkWatchErrorsComeInsideTheStream(t *testing.T, newRig func(testing.TB, ...watchcache.Option) *rig) {
	r := newRig(t)
	r.create(t, pod("a"))
	r.pods.Compact()
	w := r.watch(t, "resourceVersion=1", wireJSON)
	e := w.json()
	require.Equal(t, "ERROR", e.Type)
	var status metav1.Status
	require.NoError(t, json.Unmarshal(e.Object.Raw, &status))
	require.EqualValues(t, http.StatusGone, status.Code)
	require.Equal(t, metav1.StatusReasonExpired, status.Reason)
	require.Equal(t, "too old resource version: 1 (2)", status.Message)
	w.requireEnd()

	w = r.watch(t, "resourceVersion=1", wireProtobuf)
	e = w.protobuf()
	require.Equal(t, "ERROR", e.Type)
	require.Equal(t, status.Message, decodeProtobuf(t, e.Object.Raw).(*metav1.Status).Message)
	w.requireEnd()
}

// TestSlowClientIsCut: a client that does not read falls out of the window, and is told.
func TestSlowClientIsCut(t *testing.T) {
	r := newRig(t, watchcache.WithWindow(8))
	connection, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	require.NoError(t, err)
	defer connection.Close()
	// It is less than the writes, and more than a few segments: those of a tiny window come at the
	// pace of delayed acknowledgements.
	require.NoError(t, connection.(*net.TCPConn).SetReadBuffer(256<<10))
	_, err = fmt.Fprint(connection, "GET /api/v1/pods?watch=1&resourceVersion=1 HTTP/1.0\r\n\r\n")
	require.NoError(t, err)
	answer := bufio.NewReader(connection)
	status, err := answer.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, status, "200 OK")

	fat := pod("fat")
	fat.Spec.Containers[0].Args = []string{strings.Repeat("x", 256<<10)}
	last := r.create(t, fat)
	const writes = 100 // 25 MiB: more than the connection's buffers take
	for i := range writes {
		next := last.DeepCopy()
		next.Labels = map[string]string{"i": fmt.Sprint(i)}
		last, err = r.pods.Update(next)
		require.NoError(t, err)
	}
	rest, err := io.ReadAll(answer)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(rest)), "\n")
	require.Less(t, len(lines), writes)
	require.Contains(t, lines[len(lines)-1], `{"type":"ERROR","object":{"kind":"Status"`)
	require.Contains(t, lines[len(lines)-1], `"code":410`)
}

func TestWatchEndsAtItsTimeout(t *testing.T) { overBothProtocols(t, checkWatchEndsAtItsTimeout) }

func checkWatchEndsAtItsTimeout(t *testing.T, newRig func(testing.TB, ...watchcache.Option) *rig) {
	r := newRig(t)
	r.watch(t, "timeoutSeconds=1", wireJSON).requireEnd()
}

func TestCloseEndsWatches(t *testing.T) { overBothProtocols(t, checkCloseEndsWatches) }

func checkCloseEndsWatches(t *testing.T, newRig func(testing.TB, ...watchcache.Option) *rig) {
	r := newRig(t)
	w := r.watch(t, "", wireJSON)
	r.Close()
	w.requireEnd()
	require.Equal(t, metav1.StatusReasonServiceUnavailable, r.get(t, "/api/v1/pods").status(t).Reason)
	r.Close()
	r.create(t, pod("a"))
}

func TestBookmarksOverHTTP(t *testing.T) { overBothProtocols(t, checkBookmarksOverHTTP) }

func checkBookmarksOverHTTP(t *testing.T, newRig func(testing.TB, ...watchcache.Option) *rig) {
	r := newRig(t)
	r.create(t, pod("b"), pod("a"))
	query := "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	w := r.watch(t, query, wireProtobuf)
	for _, name := range []string{"a", "b"} {
		require.Equal(t, name, decodeProtobuf(t, w.protobuf().Object.Raw).(*corev1.Pod).Name)
	}
	e := w.protobuf()
	require.Equal(t, "BOOKMARK", e.Type)
	mark := decodeProtobuf(t, e.Object.Raw).(*corev1.Pod)
	require.Equal(t, "3", mark.ResourceVersion)
	require.Equal(t, map[string]string{metav1.InitialEventsAnnotationKey: "true"}, mark.Annotations)
	require.Empty(t, mark.Name)
}

// brokenWriter is a client that goes after the header.
type brokenWriter struct{ http.ResponseWriter }

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("the client has gone") }
func (brokenWriter) FlushError() error         { return nil }

func TestListThatBreaksOffAborts(t *testing.T) {
	r := newRig(t)
	r.create(t, pod("a"))
	for _, accept := range []string{wireJSON, wireProtobuf} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods", nil)
		require.NoError(t, err)
		request.Header.Set("Accept", accept)
		require.PanicsWithValue(t, http.ErrAbortHandler, func() {
			r.ServeHTTP(brokenWriter{discard{}}, request)
		})
	}
}

// discard is a ResponseWriter that keeps nothing.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
func (discard) Flush()                      {}
