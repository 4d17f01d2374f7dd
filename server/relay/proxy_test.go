package relay_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/relay"
)

// marked are the requests with the header that clients in these tests set.
func (u *upstream) marked() []request {
	return u.asked(func(r request) bool { return r.header.Get("X-Client") != "" })
}

// TestTheCredentialIsNeverLent: whatever a client sends, with a token or without, arrives under
// that token or none. The relay's own token and certificate are for its copies and questions.
func TestTheCredentialIsNeverLent(t *testing.T) {
	u := newUpstream(t)
	u.inhabited(t)
	certificate, key := newCertificate(t)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Client") != "" && len(r.TLS.PeerCertificates) > 0 {
			t.Errorf("%s %s came under the relay's certificate", r.Method, r.URL)
		}
		if r.Header.Get("X-Client") == "" && len(r.TLS.PeerCertificates) == 0 {
			t.Errorf("%s %s of the relay came without its certificate", r.Method, r.URL)
		}
		u.ServeHTTP(w, r)
	}))
	secure.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	config := &rest.Config{Host: secure.URL, BearerToken: relayToken, QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}),
		CertData: certificate, KeyData: key,
	}, Impersonate: rest.ImpersonationConfig{UserName: "relay"}}
	g := listening(t, u, config)
	tokens := []string{"", "Bearer " + clientToken, "Basic dTpw"}
	for _, path := range append(paths, "/api", "/apis", "/openapi/v3", "/version", "/api/v1/namespaces/ns/pods/pod-0/log") {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"} {
			for _, token := range tokens {
				r, err := http.NewRequest(method, g.url+path, strings.NewReader("{}"))
				require.NoError(t, err)
				if method == http.MethodGet {
					r.Body = http.NoBody
				}
				r.Header.Set("X-Client", "sends:"+token)
				r.Header.Set("Authorization", token)
				r.Header.Set("Impersonate-User", "") // is passed on, too
				if token != "" {
					r.Header.Del("Impersonate-User")
				}
				answer, err := http.DefaultClient.Do(r)
				require.NoError(t, err)
				_ = answer.Body.Close()
			}
		}
	}
	marked := u.marked()
	require.NotEmpty(t, marked)
	for _, r := range marked {
		require.Equal(t, r.header.Get("X-Client"), "sends:"+r.header.Get("Authorization"))
		require.NotEqual(t, "relay", r.header.Get("Impersonate-User"))
	}
	own := u.asked(func(r request) bool { return r.token == relayToken })
	require.NotEmpty(t, own)
	for _, r := range own {
		require.Empty(t, r.header.Get("X-Client"))
		require.Equal(t, http.MethodGet, r.method)
		require.Equal(t, "relay", r.header.Get("Impersonate-User"))
	}
}

// listening is a relay with a config of its own.
func listening(t testing.TB, u *upstream, config *rest.Config, options ...relay.Option) *rig {
	t.Helper()
	g := &rig{upstream: u}
	g.listen(t, config, relay.Open, options)
	return g
}

// newCertificate is a certificate for a client, which nobody has signed.
func newCertificate(t testing.TB) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "someone"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	encoded, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// TestClientCertificatesCannotBePassedOn: a client that shows a certificate reads from copies; what
// is for the upstream needs a token.
func TestClientCertificatesCannotBePassedOn(t *testing.T) {
	u := newUpstream(t)
	u.inhabited(t)
	ask := underCertificate(t, u.config(relayToken))
	code, body := ask("GET", "/api/v1/pods", "")
	require.Equal(t, http.StatusOK, code, body)
	require.Len(t, names(t, body), 12)
	for _, path := range []string{"/api/v1/namespaces/ns/pods/pod-0/log", "/api/v1/pods?shardSelector=a", "/apis/example.com/v1/none"} {
		code, body = ask("GET", path, "")
		require.Equal(t, http.StatusForbidden, code, path)
		require.Contains(t, body, "client certificate")
	}
	code, body = ask("GET", "/apis", "")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, "apps")
	code, body = ask("GET", "/api/v1/pods?resourceVersionMatch=Exact", "")
	require.Equal(t, http.StatusUnprocessableEntity, code, "the copy gives its own error")
	require.Contains(t, body, "resourceVersionMatch")
	require.Empty(t, u.asked(func(r request) bool { return r.token != relayToken }))
	code, _ = ask("DELETE", "/api/v1/namespaces/ns/pods/pod-0", clientToken)
	require.Equal(t, http.StatusOK, code)
}

// underCertificate is a client with a certificate, of a relay that asks for one.
func underCertificate(t *testing.T, config *rest.Config) (ask func(method, path, token string) (int, string)) {
	t.Helper()
	r, err := relay.New(config, relay.Open, relay.WithTypesOf(99), relay.WithLogger(logr.Discard()))
	require.NoError(t, err)
	listener := httptest.NewUnstartedServer(r)
	listener.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	listener.StartTLS()
	t.Cleanup(func() {
		require.NoError(t, r.Shutdown(context.WithoutCancel(t.Context())))
		listener.Close()
	})
	certificate, key := newCertificate(t)
	pair, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	transport := listener.Client().Transport.(*http.Transport)
	transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
	return func(method, path, token string) (int, string) {
		request, err := http.NewRequest(method, listener.URL+path, nil)
		require.NoError(t, err)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := listener.Client().Do(request)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, string(body)
	}
}

// TestRequestsPassThrough: writes reach the upstream as their client sent them, and the answers
// come back as they are.
func TestRequestsPassThrough(t *testing.T) {
	g := newRig(t)
	g.upstream.inhabited(t)
	pods := clientset(t, g.config()).CoreV1().Pods("ns")
	made, err := pods.Create(t.Context(), pod("ns", "new", ""), metav1.CreateOptions{})
	require.NoError(t, err)
	made.Labels = map[string]string{"a": "b"}
	updated, err := pods.Update(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, made.Labels, updated.Labels)
	patched, err := pods.Patch(t.Context(), "new", types.MergePatchType, []byte(`{"metadata":{"labels":{"c":"d"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b", "c": "d"}, patched.Labels)
	got, err := pods.Get(t.Context(), "new", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, patched, got)
	require.NoError(t, pods.Delete(t.Context(), "new", metav1.DeleteOptions{}))

	var sent *http.Request
	g.upstream.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("X-Mine") == "" {
			return false
		}
		sent = r.Clone(context.Background())
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Warning", `299 - "look"`)
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "not touched")
		return true
	})
	r, err := http.NewRequest(http.MethodGet, g.url+"/api/v1/namespaces/ns/services/https:a:b/proxy/x%20y/a%2Fb//c;d?a=%zz&b=1;c=2&shardSelector=", nil)
	require.NoError(t, err)
	for name, value := range map[string]string{
		"X-Mine": "1", "Accept-Encoding": "zstd", "X-Forwarded-For": "10.0.0.9", "Impersonate-User": "jane", "Connection": "X-Hop", "X-Hop": "1",
		"Authorization": "Bearer mine", "User-Agent": "agent/1",
	} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusTeapot, answer.StatusCode)
	require.Equal(t, "not touched", string(body))
	require.Equal(t, `299 - "look"`, answer.Header.Get("Warning"))
	require.Equal(t, "/api/v1/namespaces/ns/services/https:a:b/proxy/x%20y/a%2Fb//c;d?a=%zz&b=1;c=2&shardSelector=", sent.RequestURI)
	require.Equal(t, g.upstream.address, sent.Host)
	require.Equal(t, "10.0.0.9, 127.0.0.1", sent.Header.Get("X-Forwarded-For"))
	require.Equal(t, []string{"jane", "Bearer mine", "agent/1", "zstd", ""}, []string{
		sent.Header.Get("Impersonate-User"), sent.Header.Get("Authorization"), sent.UserAgent(), sent.Header.Get("Accept-Encoding"), sent.Header.Get("X-Hop"),
	})
}

// TestUpgradesPassThrough: a connection that is upgraded, as for exec, carries bytes both ways, to
// an upstream that speaks HTTP/2 too.
func TestUpgradesPassThrough(t *testing.T) {
	u := newUpstream(t)
	u.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Upgrade") == "" {
			return false
		}
		connection, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return true
		}
		defer connection.Close()
		fmt.Fprintf(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nX-Stream-Protocol-Version: v5\r\n\r\n", r.Header.Get("Upgrade"))
		for {
			line, err := buffered.ReadString('\n')
			if err != nil {
				return true
			}
			fmt.Fprintf(connection, "%s says %s", r.Header.Get("Authorization"), line)
		}
	})
	secure := httptest.NewUnstartedServer(u)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(secure.Close)
	encrypted := &rest.Config{Host: secure.URL, BearerToken: relayToken, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}),
	}}
	for _, config := range []*rest.Config{u.config(relayToken), encrypted} {
		g := listening(t, u, config)
		for _, protocol := range []string{"SPDY/3.1", "websocket"} {
			connection, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
			require.NoError(t, err)
			fmt.Fprintf(connection, "POST /api/v1/namespaces/ns/pods/a/exec?command=sh HTTP/1.1\r\nHost: localhost\r\n"+
				"Authorization: mine\r\nConnection: Upgrade\r\nUpgrade: %s\r\nContent-Length: 0\r\n\r\n", protocol)
			reader := bufio.NewReader(connection)
			answer, err := http.ReadResponse(reader, nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusSwitchingProtocols, answer.StatusCode)
			require.Equal(t, "v5", answer.Header.Get("X-Stream-Protocol-Version"))
			for _, line := range []string{"one\n", "two\n"} {
				_, _ = io.WriteString(connection, line)
				echo, err := reader.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, "mine says "+line, echo)
			}
			require.NoError(t, connection.Close())
		}
	}
}

// TestLogsAreStreamed: a line of a log comes when it is written, and not when more is.
func TestLogsAreStreamed(t *testing.T) {
	g := newRig(t)
	lines := make(chan string)
	g.upstream.answers(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		for line := range lines {
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
		}
		return true
	})
	answer := make(chan *http.Response, 1)
	go func() {
		r, err := http.Get(g.url + "/api/v1/namespaces/ns/pods/a/log?follow=true")
		if err != nil {
			t.Error(err)
		}
		answer <- r
	}()
	lines <- "one\n"
	response := <-answer
	require.NotNil(t, response)
	defer response.Body.Close()
	reader := bufio.NewReader(response.Body)
	for _, next := range []string{"two\n", "three\n", ""} {
		_, err := reader.ReadString('\n')
		require.NoError(t, err)
		if next != "" {
			lines <- next
		}
	}
	close(lines)
	_, err := reader.ReadString('\n')
	require.ErrorIs(t, err, io.EOF)
}

// TestARefusedUploadEnds: over HTTP/2, a request is refused before its body has come. The client
// keeps the body to itself, and gets the whole answer.
func TestARefusedUploadEnds(t *testing.T) {
	start := func(handler http.Handler) (url string, authority []byte) {
		s := httptest.NewUnstartedServer(handler)
		s.EnableHTTP2 = true
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	}
	url, authority := start(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusForbidden)
	}))
	r, err := relay.New(&rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}, relay.Open)
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Shutdown(context.WithoutCancel(t.Context()))) }()
	url, authority = start(r)
	client, err := rest.HTTPClientFor(&rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{CAData: authority}})
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	body, unsent := io.Pipe() // nothing comes
	defer unsent.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/api/v1/namespaces/ns/pods", body)
	require.NoError(t, err)
	answer, err := client.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, 2, answer.ProtoMajor)
	require.Equal(t, http.StatusForbidden, answer.StatusCode)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "no\n", string(text))
}
