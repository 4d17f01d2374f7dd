package static_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

// authority signs certificates of its own.
type authority struct {
	t           *testing.T
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue makes a certificate and its key in PEM, signed by the authority or, where there is none, by
// itself.
func issue(t *testing.T, by *authority, name string) (certificate, key []byte, made *authority) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: by == nil, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, private
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), &authority{t, parsed, private}
}

// serveTLS serves a config map whose value is the name in the client's certificate. It asks for one
// that clients signed.
func serveTLS(t *testing.T, by, clients *authority) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serveTLSAt(t, listener, by, clients)
}

func serveTLSAt(t *testing.T, listener net.Listener, by, clients *authority) *httptest.Server {
	t.Helper()
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = io.WriteString(w, mapOf("client", name))
	})}}
	certificate, key, _ := issue(t, by, "server")
	pair, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	if clients != nil {
		server.TLS.ClientAuth, server.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		server.TLS.ClientCAs.AddCert(clients.certificate)
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func polling(address string, options ...static.Option) *static.Reader[*corev1.ConfigMap] {
	return static.HTTP(address, manifest.Objects[corev1.ConfigMap](configMap), append(options, static.WithInterval(5*time.Millisecond))...)
}

func TestCAFileThatChanges(t *testing.T) {
	ca, _, by := issue(t, nil, "ca")
	other, key, _ := issue(t, nil, "other")
	server := serveTLS(t, by, nil)
	path := filepath.Join(t.TempDir(), "ca.pem")
	o := polling(server.URL, static.WithCA(path))
	next := follow(t, o, shown)
	problem(t, o.Report, "the CA file: open "+path+": no such file")
	put(t, path, string(key))
	problem(t, o.Report, "the CA file "+path+" holds no certificate in PEM")
	put(t, path, string(other))
	problem(t, o.Report, "certificate signed by unknown authority")
	put(t, path, string(other)+string(ca))
	require.Equal(t, "client=nobody", next())
	well(t, o.Report)
	put(t, path, string(other)) // it is trusted no longer, though the connection would do
	problem(t, o.Report, "certificate signed by unknown authority")
	require.False(t, o.Report().Complete)
}

func TestClientCertificateThatIsRenewed(t *testing.T) {
	ca, _, by := issue(t, nil, "ca")
	_, _, stranger := issue(t, nil, "stranger")
	server := serveTLS(t, by, by)
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	put(t, in("ca.pem"), string(ca))
	o := polling(server.URL, static.WithCA(in("ca.pem")), static.WithClientCertificate(in("tls.crt"), in("tls.key")))
	next := follow(t, o, shown)
	problem(t, o.Report, "the client certificate: open "+in("tls.crt"))
	renew := func(by *authority, name string) (key []byte) {
		certificate, key, _ := issue(t, by, name)
		put(t, in("tls.crt"), string(certificate))
		problem(t, o.Report, in("tls.key")) // it is missing, or of another certificate
		put(t, in("tls.key"), string(key))
		return key
	}
	renew(by, "one")
	require.Equal(t, "client=one", next())
	renew(by, "two")
	require.Equal(t, "client=two", next())
	key := renew(stranger, "three")
	problem(t, o.Report, "remote error: tls:")
	put(t, in("tls.key"), "hunter2\n"+string(key[:100]))
	problem(t, o.Report, "the client certificate "+in("tls.crt")+" and its key "+in("tls.key")+": tls:")
	for _, err := range o.Report().Problems {
		require.NotContains(t, err.Error(), "hunter2")
		require.NotContains(t, err.Error(), string(key[30:60]))
	}
	renew(by, "four")
	require.Equal(t, "client=four", next())
}

// socket is a path for one, which must be short.
func socket(t *testing.T) (path string) {
	folder, err := os.MkdirTemp("", "s")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return filepath.Join(folder, "socket")
}

func TestUnixSocket(t *testing.T) {
	path := socket(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	o := polling("http://manifests.example/configs", static.WithUnixSocket(path))
	next := follow(t, o, shown)
	problem(t, o.Report, "http://manifests.example/configs: dial unix "+path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Skip(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, mapOf("asked", r.Host))
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	require.Equal(t, "asked=manifests.example", next())
	require.NoError(t, server.Close())
	<-done
	problem(t, o.Report, "dial unix "+path)
}

func TestConnectionOptionsThatExcludeEachOther(t *testing.T) {
	for want, options := range map[string][]static.Option{
		"WithClientCertificate: give the file of the certificate and that of its key": {static.WithClientCertificate("a", "")},
		"give one of them": {static.WithCA("a"), static.WithTransport(&http.Transport{})},
	} {
		err := polling("http://localhost", options...).Run(t.Context(), nil)
		require.ErrorContains(t, err, want)
		require.True(t, strings.HasPrefix(err.Error(), "With"))
	}
}

// TestTLSOverAUnixSocket: the certificates count as they do elsewhere, and the server's is for the
// URL's host.
func TestTLSOverAUnixSocket(t *testing.T) {
	path := socket(t)
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Skip(err)
	}
	ca, _, by := issue(t, nil, "ca")
	certificate, key, _ := issue(t, by, "agent")
	serveTLSAt(t, listener, by, by)
	folder := t.TempDir()
	put(t, filepath.Join(folder, "ca.pem"), string(ca))
	put(t, filepath.Join(folder, "tls.crt"), string(certificate))
	put(t, filepath.Join(folder, "tls.key"), string(key))
	asking := func(host string) *static.Reader[*corev1.ConfigMap] {
		return polling("https://"+host+"/configs", static.WithUnixSocket(path), static.WithCA(filepath.Join(folder, "ca.pem")),
			static.WithClientCertificate(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")))
	}
	require.Equal(t, "client=agent", follow(t, asking("localhost"), shown)())
	stranger := asking("manifests.example")
	follow(t, stranger, shown)
	problem(t, stranger.Report, "certificate is valid for localhost, not manifests.example")
}
