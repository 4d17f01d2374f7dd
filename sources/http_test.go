package sources_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
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
	"github.com/tributary-go/tributary/sources/manifest"
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

// askedAgain waits until the server has been asked twice more: the first of them has been dealt with then.
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
func polling(t *testing.T, address string, options ...sources.SourceOption) *rig {
	return start(t, pollingSource(t, address, options...))
}

func pollingSource(t *testing.T, address string, options ...sources.SourceOption) sources.Option {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return sources.HTTP(address, append([]sources.SourceOption{sources.Every(5 * time.Millisecond), sources.WithTransport(transport)}, options...)...)
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

func TestHTTPAnswersThatAreNone(t *testing.T) {
	const secret = "hunter2"
	good := body(podList(item("a", "v1"), item("b", "v1")))
	for _, row := range []struct {
		name    string
		answer  http.HandlerFunc
		problem string
	}{
		{"401", status(401), "the server answered 401 Unauthorized"},
		{"404", status(404), "the server answered 404 Not Found"},
		{"500", status(500), "the server answered 500 Internal Server Error"},
		{"204", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "the server answered 204 No Content"},
		{"304 that was not asked for", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, "the server answered 304"},
		{"an empty 200", body(""), "the body is empty"},
		{"a blank 200", body("\n\n"), "no document"},
		{"no manifest", body("<html>" + secret + "</html>"), "document 1"},
		{"wrong content type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<!doctype html><p>"+secret)
		}, "document 1"},
		{"a List of another kind", body(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"` + secret + `"}}]}`),
			"item 1"},
		{"a bare array", body("[" + item(secret, "v1") + "]"), "document 1"},
		{"10 MiB", body(strings.Repeat("#"+secret+"\n", manifest.MaxSize/8)), "10 MiB or more"},
		{"cut short", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, manifestOf(secret, "v1")[:50])
		}, "unexpected EOF"},
		{"no HTTP", hijacked(secret + " is no HTTP\r\n\r\n"), "its text is left out"},
		{"a bad header", hijacked("HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n"), "its text is left out"},
		{"a bad redirect", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://user:"+secret+"@[::1")
			w.WriteHeader(302)
		}, "its text is left out"},
		{"a gzip bomb", bomb, "10 MiB or more"},
		{"no gzip", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, secret+" is no gzip, and long enough")
		}, "gzip: invalid header"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var log logLines
			server := serve(t, row.answer)
			r := start(t, sources.WithLogger(log.logger()), pollingSource(t, server.URL))
			require.NotContains(t, r.problem(row.problem), secret)
			require.False(t, r.Status()[0].Seen)
			server.now(good)
			r.expect("ADD http a-node-1=v1 b-node-1=v1") // and nothing before
			r.healthy()
			server.now(row.answer)
			r.problem(row.problem)
			require.Equal(t, 2, r.Status()[0].Pods)
			server.now(good)
			r.healthy()
			server.now(body(podList(item("b", "v1"))))
			r.expect("REMOVE http a-node-1=v1")
			require.NotContains(t, log.text(), secret)
		})
	}
}

// hijacked answers with bytes of its own.
func hijacked(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}
	}
}

// bomb is a gigabyte of blanks in a megabyte.
func bomb(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	blanks := make([]byte, 1<<20)
	for i := range blanks {
		blanks[i] = ' '
	}
	for range 1 << 10 {
		if _, err := z.Write(blanks); err != nil {
			return
		}
	}
	_ = z.Close()
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

func TestHTTPThatTakesTooLong(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer func(http.ResponseWriter)
	}{
		{"slow headers", func(http.ResponseWriter) {}},
		{"chunked for ever", func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, "# wait for it\n")
			w.(http.Flusher).Flush()
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				row.answer(w)
				<-r.Context().Done()
			})
			r := polling(t, server.URL, sources.WithTimeout(30*time.Millisecond))
			r.problem("no complete answer within 30ms: context deadline exceeded")
			server.now(body(manifestOf("p", "v1")))
			r.expect("ADD http p-node-1=v1")
		})
	}
}

func TestHTTPChunksWithoutEndAreBounded(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := []byte(strings.Repeat("#", 64<<10))
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	polling(t, server.URL).problem("10 MiB or more")
}

func TestHTTPRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := "http://user:hunter2@" + listener.Addr().String() + "/pods?token=hunter3"
	require.NoError(t, listener.Close())
	text := polling(t, address).problem("connection refused")
	require.NotContains(t, text, "hunter")
	require.Contains(t, text, "http://"+listener.Addr().String()+"/pods: ")
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
	token := sources.WithHeader("Authorization", "Bearer hunter2")
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
	polling(t, server.URL, sources.WithHeader("X-Role", "edge"), sources.WithHeader("X-Role", "test"),
		sources.WithHeader("Host", "manifests.example")).expect("ADD http p-node-1=v1")
	first := server.asked()[0]
	require.Equal(t, []string{"edge", "test"}, first.Header.Values("X-Role"))
	require.Equal(t, "gzip", first.Header.Get("Accept-Encoding"))
	require.Equal(t, "manifests.example", first.Host)
}

func TestHTTPSecretsAreNeverShown(t *testing.T) {
	answers := []http.HandlerFunc{
		status(403), body(""), body("hunter2"), hijacked("hunter2"), body(manifestOf("p", "v1")),
		func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.example/?token=hunter2", http.StatusFound)
		},
	}
	var log logLines
	server := serve(t, answers[0])
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	address.User, address.RawQuery, address.Path = url.UserPassword("edge", "hunter2"), "token=hunter2", "/pods"
	r := start(t, sources.WithLogger(log.logger()), pollingSource(t, address.String(), sources.WithHeader("X-Token", "hunter2")))
	for _, answer := range answers {
		server.now(answer)
		server.askedAgain(t)
		require.NotContains(t, fmt.Sprintf("%+v %q", r.Status(), r.Status()[0].Problems), "hunter2")
	}
	user, password, _ := server.asked()[0].BasicAuth()
	require.Equal(t, "edge hunter2", user+" "+password)
	require.Equal(t, "hunter2", server.asked()[0].Header.Get("X-Token"))
	require.Contains(t, log.text(), "Problem")
	require.NotContains(t, log.text(), "hunter2")
}

func TestHTTPBadAddresses(t *testing.T) {
	for _, row := range []struct{ address, want string }{
		{"http://user:hunter2@host:port/", "cannot be parsed"},
		{"ftp://user:hunter2@host/", `scheme "ftp"`},
		{"https:///pods?hunter2", "no host"},
		{"", `scheme ""`},
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
	r := start(t, sources.HTTP("http://socket/pods", sources.WithTransport(transport)))
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
	r := start(t, sources.File(path, sources.Every(time.Hour)), pollingSource(t, server.URL))
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
	r := polling(t, server.URL, sources.WithTokenFile(path))
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
	both := sources.HTTP(server.URL, sources.WithTokenFile(path), sources.WithHeader("authorization", "Basic x"))
	require.ErrorContains(t, sources.New("node-1", both).Run(t.Context()), "give one of them")
}
