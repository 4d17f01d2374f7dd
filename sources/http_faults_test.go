package sources_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

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
		{"an error in JSON", body(`{"error":"` + secret + `"}`), "document 1"},
		{"a Status", body(`{"apiVersion":"v1","kind":"Status","status":"Failure","message":"` + secret + `"}`), "document 1"},
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
			require.False(t, r.SafeToPrune(sources.HTTPSource))
			heard := r.Status()[0].LastContact
			server.askedAgain(t)
			require.Equal(t, heard, r.Status()[0].LastContact, "the real list may be another one by now")
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
			r := polling(t, server.URL, static.WithTimeout(30*time.Millisecond))
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

// A URL with http:// for a port that speaks HTTPS: servers answer in HTTP, or with an alert of TLS.
func TestHTTPSIsAskedFor(t *testing.T) {
	const ask = "it speaks HTTPS: begin the manifest URL with https://"
	secure := httptest.NewTLSServer(body(manifestOf("p", "v1")))
	t.Cleanup(secure.Close)
	port := secure.Listener.Addr().String()
	alert := serve(t, hijacked("\x15\x03\x01\x00\x02\x02\x16"))
	bad := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "hunter2", http.StatusBadRequest)
	})
	for name, options := range map[string][]sources.Option{"default": nil, "like the kubelet": {sources.LikeKubelet()}} {
		t.Run(name, func(t *testing.T) {
			problem := func(address, text string) string {
				return start(t, append([]sources.Option{pollingSource(t, address)}, options...)...).problem(text)
			}
			require.Equal(t, "http://"+port+"/pods: the server answered 400 Bad Request: "+ask, problem("http://"+port+"/pods", ask))
			require.Equal(t, alert.URL+": the server did not answer in HTTP: "+ask, problem(alert.URL, ask))
			require.Equal(t, bad.URL+": the server answered 400 Bad Request", problem(bad.URL, "400"))
		})
	}
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
	token := filepath.Join(t.TempDir(), "token")
	put(t, token, "hunter2")
	r := start(t, sources.WithLogger(log.logger()), pollingSource(t, address.String(), static.WithHeader("X-Token", "hunter2")),
		pollingSource(t, server.URL, static.WithTokenFile(token)).Named("token"))
	for _, answer := range answers {
		server.now(answer)
		server.askedAgain(t)
		server.askedAgain(t) // by both
		require.NotContains(t, fmt.Sprintf("%+v %q %q", r.Status(), r.Status()[0].Problems, r.Status()[1].Problems), "hunter2")
	}
	sent := map[string]bool{}
	for _, request := range server.asked() {
		sent[request.Header.Get("Authorization")] = true
		sent[request.Header.Get("X-Token")] = true
	}
	require.Equal(t, map[string]bool{"Basic ZWRnZTpodW50ZXIy": true, "Bearer hunter2": true, "hunter2": true, "": true}, sent)
	require.Contains(t, log.text(), "Problem")
	require.NotContains(t, log.text(), "hunter2")
}
