package sources_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// web is a server whose answer a test changes, and that counts what it was asked.
type web struct {
	*httptest.Server
	mu       sync.Mutex
	answer   http.HandlerFunc
	requests []*http.Request
}

func serve(t *testing.T, answer http.HandlerFunc) *web {
	w := &web{answer: answer}
	w.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		now := w.answer
		w.requests = append(w.requests, r)
		w.mu.Unlock()
		now(rw, r)
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *web) now(answer http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

func (w *web) asked() []*http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*http.Request(nil), w.requests...)
}

// askedAgain waits until the server has been asked twice more: the first of them has been dealt
// with then.
func (w *web) askedAgain(t *testing.T) {
	t.Helper()
	before := len(w.asked())
	require.Eventually(t, func() bool { return len(w.asked()) >= before+2 }, patience, time.Millisecond)
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "the text of the page", code) }
}

// item is a pod of a PodList in JSON.
func item(name, image string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"containers":[{"name":"main","image":%q}]}}`, name, image)
}

func podList(items ...string) string {
	return `{"apiVersion":"v1","kind":"PodList","items":[` + strings.Join(items, ",") + `]}`
}

// polling starts an HTTP source that asks often. Its connections end with the test.
func polling(t *testing.T, address string, options ...static.Option) *rig {
	return start(t, pollingSource(t, address, options...))
}

func pollingSource(t *testing.T, address string, options ...static.Option) sources.Input {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return sources.HTTP(address, append([]static.Option{static.WithInterval(5 * time.Millisecond), static.WithTransport(transport)}, options...)...)
}

func TestHTTPBodies(t *testing.T) {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{
		*podOf("b", "v1"), *podOf("a", "v1"),
	}}
	var binary strings.Builder
	require.NoError(t, protobuf.NewSerializer(nil, nil).Encode(list, &binary))
	for _, row := range []struct{ name, body, want string }{
		{"a pod in YAML", manifestOf("p", "v1"), "ADD http p-node-1=v1"},
		{"a pod in JSON", `{"apiVersion":"v1","kind":"Pod",` + item("p", "v1")[1:], "ADD http p-node-1=v1"},
		{"a PodList, in its order", podList(item("b", "v1"), item("a", "v1")), "ADD http b-node-1=v1 a-node-1=v1"},
		{"a PodList in YAML", "apiVersion: v1\nkind: PodList\nitems:\n- " + item("b", "v1") + "\n- " + item("a", "v1"),
			"ADD http b-node-1=v1 a-node-1=v1"},
		{"a PodList in protobuf", binary.String(), "ADD http b-node-1=v1 a-node-1=v1"},
		{"a PodList of none", podList(), "ADD http"},
		{"one bad item costs itself alone", podList(item("b", "v1"), item("a", ""), item("c", "v1")), "ADD http b-node-1=v1 c-node-1=v1"},
		{"two of one name: the first", podList(item("p", "v1"), item("p", "v2")), "ADD http p-node-1=v1"},
		{"two documents", manifestOf("b", "v1") + "---\n" + manifestOf("a", "v1"), "ADD http b-node-1=v1 a-node-1=v1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			server := serve(t, body(row.body))
			polling(t, server.URL).expect(row.want)
		})
	}
}

// The kubelet does not look at the type either: servers of plain files know no better.
func TestHTTPTypeOfTheContentDoesNotCount(t *testing.T) {
	for _, kind := range []string{"text/html; charset=utf-8", "application/octet-stream", "hunter2"} {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			body(manifestOf("p", "v1"))(w, r)
		})
		polling(t, server.URL).expect("ADD http p-node-1=v1")
	}
}

func TestHTTPChanges(t *testing.T) {
	server := serve(t, body(podList(item("a", "v1"), item("b", "v1"))))
	r := polling(t, server.URL)
	r.expect("ADD http a-node-1=v1 b-node-1=v1")
	server.now(body(podList(item("b", "v1"), item("c", "v1"))))
	r.expect("REMOVE http a-node-1=v1", "ADD http c-node-1=v1")
	server.now(body(podList(item("b", "v1"), item("c", "v2"))))
	r.expect("REMOVE http c-node-1=v1", "ADD http c-node-1=v2")
	server.now(body(podList()))
	r.expect("REMOVE http b-node-1=v1 c-node-1=v2")
}

func TestHTTPOneBadItemKeepsItsPod(t *testing.T) {
	server := serve(t, body(podList(item("a", "v1"), item("b", "v1"))))
	r := polling(t, server.URL)
	r.expect("ADD http a-node-1=v1 b-node-1=v1")
	server.now(body(podList(item("a", ""), item("b", "v2"))))
	r.expect("REMOVE http b-node-1=v1", "ADD http b-node-1=v2")
	r.problem("item 1")
	server.askedAgain(t)
	r.problem("item 1") // it is not forgotten when the same bytes come again
	server.now(body(podList(item("a", "v3"), item("b", "v2"))))
	r.expect("REMOVE http a-node-1=v1", "ADD http a-node-1=v3")
	r.healthy()
}

func TestHTTPConditionalRequests(t *testing.T) {
	const modified = "Sat, 21 Nov 2026 06:00:00 GMT"
	current, text := `"1"`, manifestOf("p", "v1")
	server := serve(t, nil)
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", current)
		w.Header().Set("Last-Modified", modified)
		if r.Header.Get("If-None-Match") == current {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = io.WriteString(w, text)
	}
	server.now(answer)
	r := polling(t, server.URL)
	r.expect("ADD http p-node-1=v1")
	server.askedAgain(t)
	asked := server.asked()
	require.Empty(t, asked[0].Header.Get("If-None-Match"))
	require.Equal(t, `"1"`, asked[len(asked)-1].Header.Get("If-None-Match"))
	require.Equal(t, modified, asked[len(asked)-1].Header.Get("If-Modified-Since"))
	r.healthy()
	server.now(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"2"`)
		body("not a manifest")(w, r)
	})
	r.problem("document 1")
	server.askedAgain(t)
	asked = server.asked()
	require.NotEqual(t, `"2"`, asked[len(asked)-1].Header.Get("If-None-Match"), "what was not accepted was not seen")
	server.now(body(manifestOf("p", "v2")))
	r.expect("REMOVE http p-node-1=v1", "ADD http p-node-1=v2")
}

func TestHTTPRedirects(t *testing.T) {
	other := serve(t, body(manifestOf("stolen", "v1")))
	server := serve(t, nil)
	server.now(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			http.Redirect(w, r, "/pods", http.StatusMovedPermanently)
		case "/away":
			http.Redirect(w, r, other.URL+"/pods?token=hunter4", http.StatusMovedPermanently)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		default:
			body(manifestOf("p", "v1"))(w, r)
		}
	})
	token := static.WithHeader("Authorization", "Bearer hunter2")
	polling(t, server.URL+"/here", token).expect("ADD http p-node-1=v1")
	require.Equal(t, "Bearer hunter2", server.asked()[1].Header.Get("Authorization"))
	text := polling(t, server.URL+"/away", token).problem("is another server")
	require.NotContains(t, text, "hunter")
	require.Empty(t, other.asked())
	polling(t, server.URL+"/loop").problem("not followed: 10 times")
}

func TestHTTPHeaders(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, manifestOf("p", "v1"))
		_ = z.Close()
	})
	polling(t, server.URL, static.WithHeader("X-Role", "edge"), static.WithHeader("X-Role", "test"),
		static.WithHeader("Host", "manifests.example")).expect("ADD http p-node-1=v1")
	first := server.asked()[0]
	require.Equal(t, []string{"edge", "test"}, first.Header.Values("X-Role"))
	require.Equal(t, "gzip", first.Header.Get("Accept-Encoding"))
	require.Equal(t, "manifests.example", first.Host)
}

func TestHTTPBadAddresses(t *testing.T) {
	const noScheme = "the manifest URL does not begin with http:// or https://: write that before the host"
	for _, row := range []struct{ address, want string }{
		{"http://user:hunter2@host:port/", "cannot be parsed"},
		{"https:///pods?hunter2", "no host"},
		{"", "the manifest URL is empty: give one that begins with http:// or https://"},
		{"ftp://user:hunter2@host/", noScheme},
		{"example.com/pods?hunter2", noScheme},
		{"localhost:8080/hunter2", noScheme},
		{"127.0.0.1:8080/hunter2", noScheme},
		{"//example.com/hunter2", noScheme},
		{"user:hunter2@host/", noScheme},
	} {
		err := sources.New("node-1", sources.HTTP(row.address)).Run(t.Context())
		require.ErrorContains(t, err, row.want)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestHTTPOverAUnixSocket(t *testing.T) {
	path := t.TempDir() + "/socket"
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Skip(err)
	}
	server := &http.Server{Handler: body(manifestOf("p", "v1"))}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	r := start(t, sources.HTTP("http://socket/pods", static.WithTransport(transport)))
	r.expect("ADD http p-node-1=v1")
	transport.CloseIdleConnections()
	require.NoError(t, server.Close())
	<-done
	_ = os.Remove(path)
}

func TestHTTPAndFileOfOneName(t *testing.T) {
	server := serve(t, body(manifestOf("p", "v1")))
	path := folder(t)
	put(t, path+"/a.yaml", manifestOf("p", "v1"))
	r := start(t, sources.File(path, static.WithInterval(time.Hour)), pollingSource(t, server.URL))
	one, two := r.update(), r.update()
	require.ElementsMatch(t, []string{"ADD file p-node-1=v1", "ADD http p-node-1=v1"}, []string{describe(one), describe(two)})
	require.NotEqual(t, one.Pods[0].UID, two.Pods[0].UID)
	for _, u := range []sources.PodUpdate{one, two} {
		tolerates := 0
		if u.Source == sources.FileSource {
			tolerates = 1
		}
		require.Len(t, u.Pods[0].Spec.Tolerations, tolerates, "pods of files alone tolerate taints that evict")
	}
}

func TestHTTPTokenFile(t *testing.T) {
	server := serve(t, nil)
	server.now(func(w http.ResponseWriter, r *http.Request) {
		body(manifestOf("p", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))(w, r)
	})
	path := t.TempDir() + "/token"
	r := polling(t, server.URL, static.WithTokenFile(path))
	r.problem("the token file")
	require.Empty(t, server.asked())
	put(t, path, "one\n")
	r.expect("ADD http p-node-1=one")
	put(t, path, "two\n")
	r.expect("REMOVE http p-node-1=one", "ADD http p-node-1=two")
	for _, wrong := range []string{"", "hunter2 hunter3", "hunter2\nX-Injected: yes"} {
		put(t, path, wrong)
		require.NotContains(t, r.problem("does not hold one word"), "hunter")
		require.Equal(t, 1, r.Status()[0].Pods)
		put(t, path, "two")
		r.healthy()
	}
	both := sources.HTTP(server.URL, static.WithTokenFile(path), static.WithHeader("authorization", "Basic x"))
	require.ErrorContains(t, sources.New("node-1", both).Run(t.Context()), "give one of them")
}
