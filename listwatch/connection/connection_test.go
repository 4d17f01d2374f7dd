package connection_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/connection"
)

// TestSeparate: writes over a config and watches over its copy are on two connections, however many
// clients there are, and whatever credentials, proxy or dialer the config has.
func TestSeparate(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(t *testing.T, server *http2Server)
		// seen fails if a request lacks what set asks for.
		seen        func(t *testing.T, r *http.Request)
		connections int
	}{
		{name: "an authority", connections: 2},
		{name: "HTTP/2 by name", connections: 2, set: func(_ *testing.T, s *http2Server) {
			s.config.NextProtos = []string{"h2", "http/1.1"}
		}},
		{name: "HTTP/2 alone", connections: 2, set: func(_ *testing.T, s *http2Server) {
			s.config.NextProtos = []string{"h2"}
		}},
		{name: "a token", connections: 2, set: func(_ *testing.T, s *http2Server) {
			s.config.BearerToken = "of-the-config"
		}, seen: func(t *testing.T, r *http.Request) {
			assert.Equal(t, "Bearer of-the-config", r.Header.Get("Authorization"))
		}},
		{name: "a client certificate", connections: 2, set: func(t *testing.T, s *http2Server) {
			own := s.TLS.Certificates[0]
			key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
			require.NoError(t, err)
			s.config.CertData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]})
			s.config.KeyData = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
		}, seen: func(t *testing.T, r *http.Request) {
			assert.NotEmpty(t, r.TLS.PeerCertificates)
		}},
		{name: "a credential plugin", connections: 2, set: func(t *testing.T, s *http2Server) {
			script := filepath.Join(t.TempDir(), "plugin")
			require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho '"+
				`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"of-the-plugin"}}`+"'\n"), 0o700))
			s.config.ExecProvider = &clientcmdapi.ExecConfig{
				Command: script, APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
			}
		}, seen: func(t *testing.T, r *http.Request) {
			assert.Equal(t, "Bearer of-the-plugin", r.Header.Get("Authorization"))
		}},
		{name: "a wrapped transport", connections: 2, set: func(_ *testing.T, s *http2Server) {
			s.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					r = r.Clone(r.Context())
					r.Header.Set("Wrapped", "once")
					return next.RoundTrip(r)
				})
			})
		}, seen: func(t *testing.T, r *http.Request) {
			assert.Equal(t, []string{"once"}, r.Header.Values("Wrapped"))
		}},
		{name: "a proxy: one for each client, as without", connections: 6, set: func(_ *testing.T, s *http2Server) {
			s.config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
		}},
		{name: "a dialer: one for each client, as without", connections: 6, set: func(_ *testing.T, s *http2Server) {
			s.config.Dial = (&net.Dialer{}).DialContext
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := serveHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor != 2 {
					http.Error(w, "not HTTP/2", http.StatusBadRequest)
					return
				}
				if c.seen != nil {
					c.seen(t, r)
				}
				answerLate(w, r)
			})
			if c.set != nil {
				c.set(t, server)
			}
			before := rest.CopyConfig(server.config)
			for range 3 {
				watchAndWrite(t, connection.Separate(server.config), server.config)
			}
			require.EqualValues(t, c.connections, server.connections.Load())
			assert.Equal(t, before.NextProtos, server.config.NextProtos, "the program's own config")
		})
	}
}

// TestSeparateTwice: the copy of a copy has a third connection.
func TestSeparateTwice(t *testing.T) {
	server := serveHTTP2(t, answerLate)
	second := connection.Separate(server.config)
	third := connection.Separate(second)
	for range 2 {
		watchAndWrite(t, third, second)
		watchAndWrite(t, second, server.config)
	}
	require.EqualValues(t, 3, server.connections.Load())
}

// TestSeparateWithoutHTTP2: a process or a config that refuses HTTP/2 goes on without it. To offer
// it all the same would break every request.
func TestSeparateWithoutHTTP2(t *testing.T) {
	for name, set := range map[string]func(*testing.T, *rest.Config){
		"the process": func(t *testing.T, _ *rest.Config) { t.Setenv("DISABLE_HTTP2", "1") },
		"the config":  func(_ *testing.T, config *rest.Config) { config.NextProtos = []string{"http/1.1"} },
	} {
		t.Run(name, func(t *testing.T) {
			server := serveHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
				if r.ProtoMajor != 1 {
					http.Error(w, "not HTTP/1.1", http.StatusBadRequest)
					return
				}
				answerLate(w, r)
			})
			set(t, server.config)
			separate := connection.Separate(server.config)
			assert.Equal(t, server.config, separate)
			watchAndWrite(t, separate, server.config)
		})
	}
}

// TestSeparateOfATransport: the copy keeps a transport that the program made.
func TestSeparateOfATransport(t *testing.T) {
	server := serveHTTP2(t, answerLate)
	own := server.Client().Transport
	config := &rest.Config{Host: server.URL, QPS: -1, Transport: own}
	watchAndWrite(t, connection.Separate(config), config)
	require.EqualValues(t, 1, server.connections.Load())
}

func TestSeparateOfNothing(t *testing.T) {
	require.PanicsWithValue(t, "connection: Separate: the config is nil", func() { connection.Separate(nil) })
}

// watchAndWrite reads an event over a new client, and meanwhile sends a PUT over another one.
func watchAndWrite(t *testing.T, watches, writes *rest.Config) {
	t.Helper()
	pods := listwatch.FromClient[corev1.Pod](restClient(t, watches), "pods")
	events := 0
	for _, err := range pods.Watch(t.Context(), metav1.ListOptions{}) {
		require.NoError(t, err)
		put := restClient(t, writes).Put().Resource("pods").Namespace("shop").Name("web")
		require.NoError(t, put.Body([]byte("{}")).Do(t.Context()).Error())
		events++
		break
	}
	require.Equal(t, 1, events)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// http2Server is a server of HTTP/2 that counts its connections.
type http2Server struct {
	*httptest.Server
	config      *rest.Config
	connections atomic.Int64
}

var http2Servers atomic.Int64

// serveHTTP2 starts a server with the limits of kube-apiserver. Its window for bodies is wider than
// Go's by default.
func serveHTTP2(t testing.TB, handler http.HandlerFunc) *http2Server {
	t.Helper()
	const frame, streams = 256 << 10, 100
	s := &http2Server{Server: httptest.NewUnstartedServer(handler)}
	require.NoError(t, http2.ConfigureServer(s.Config, &http2.Server{
		MaxUploadBufferPerStream: frame, MaxReadFrameSize: frame,
		MaxConcurrentStreams: streams, MaxUploadBufferPerConnection: frame * streams,
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	s.config = &rest.Config{Host: s.URL, QPS: -1}
	// All servers of a test have one certificate. The line before it keeps client-go from giving
	// their clients one transport, which remembers an earlier test's settings.
	s.config.CAData = append(fmt.Appendf(nil, "server %d\n", http2Servers.Add(1)),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})...)
	return s
}
