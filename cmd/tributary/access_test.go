package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestOnlyTheKubeconfigOpens: without flags, the server has TLS and asks for a token, which are in
// a kubeconfig that its owner alone reads. They are the same ones after a restart.
func TestOnlyTheKubeconfigOpens(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	p := launch(t, "--data", data, "--resource", "pods")
	require.True(t, strings.HasPrefix(p.url, "https://"), p.url)
	require.NoError(t, filepath.WalkDir(filepath.Join(data, "access"), func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o077, "%s: %s", path, info.Mode())
		return nil
	}))
	_, err := p.client().CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{})
	require.NoError(t, err)

	for name, spoil := range map[string]func(*rest.Config){
		"no token": func(c *rest.Config) { c.BearerToken = "" }, "other token": func(c *rest.Config) { c.BearerToken += "a" },
		"password": func(c *rest.Config) { c.Username, c.Password, c.BearerToken = "a", c.BearerToken, "" },
	} {
		stranger := rest.CopyConfig(p.config)
		spoil(stranger)
		client, err := kubernetes.NewForConfig(stranger)
		require.NoError(t, err)
		_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsUnauthorized(err), "%s: %v", name, err)
		_, err = client.Discovery().ServerVersion()
		require.True(t, apierrors.IsUnauthorized(err), "%s: %v", name, err)
		_, err = client.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		require.NoError(t, err, "a probe has no token")
	}
	rebound := rest.CopyConfig(p.config)
	rebound.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Host = "rebound.example"
			return next.RoundTrip(r)
		})
	})
	client, err := kubernetes.NewForConfig(rebound)
	require.NoError(t, err)
	_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	p.kill()
	again := launch(t, "--data", data, "--resource", "pods")
	require.Equal(t, p.config.BearerToken, again.config.BearerToken)
	require.Equal(t, p.config.CAData, again.config.CAData)

	other := launch(t, "--data", filepath.Join(t.TempDir(), "data"), "--resource", "pods")
	require.NotEqual(t, p.config.BearerToken, other.config.BearerToken)
	require.NotEqual(t, p.config.CAData, other.config.CAData)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestNetworkListenerAsksForTheToken: with a token the server may listen on all addresses. Its
// certificate has them, and the names of --host.
func TestNetworkListenerAsksForTheToken(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "access")
	p := launch(t, "--data", filepath.Join(t.TempDir(), "data"), "--resource", "pods", "--listen", "0.0.0.0:0",
		"--access", folder, "--host", "relay.example")
	require.Equal(t, filepath.Join(folder, "kubeconfig"), p.kubeconfig)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.url, "https://"))
	require.NoError(t, err)
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, address := range addresses {
		ip := address.(*net.IPNet).IP
		if ip.To4() == nil {
			continue
		}
		config := rest.CopyConfig(p.config)
		config.Host = "https://" + net.JoinHostPort(ip.String(), port)
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err, ip)
		config.BearerToken = ""
		client, err = kubernetes.NewForConfig(config)
		require.NoError(t, err)
		_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsUnauthorized(err), "%v", err)
	}
	named := rest.CopyConfig(p.config)
	named.Host, named.Dial = "https://relay.example:"+port, dialer("127.0.0.1:"+port)
	client, err := kubernetes.NewForConfig(named)
	require.NoError(t, err)
	_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
}

// TestInsecureSaysSo: without a token the server says at its start who can read and write.
func TestInsecureSaysSo(t *testing.T) {
	p := launch(t, "--insecure", "--data", filepath.Join(t.TempDir(), "data"), "--resource", "pods")
	require.True(t, strings.HasPrefix(p.url, "http://"), p.url)
	_, err := p.client().CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{})
	require.NoError(t, err)
	p.kill()
	require.Equal(t, "--insecure: every program and every user of this machine can read and write all objects on "+p.url+", without a token\n",
		p.stderr.String())
}

// TestEtcdInTheProcessIsPrivate: a page or another user cannot go past the server to its etcd.
func TestEtcdInTheProcessIsPrivate(t *testing.T) {
	p := launch(t, "--data", filepath.Join(t.TempDir(), "data"), "--resource", "pods")
	socket := strings.TrimPrefix(p.etcd, "unix://")
	info, err := os.Stat(filepath.Dir(socket))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
	for _, listener := range listeners(t, p.process.Process.Pid) {
		require.Equal(t, strings.TrimPrefix(p.url, "https://"), listener, "no other port is open")
	}
	web := &http.Client{Transport: &http.Transport{DialContext: unixDialer(socket)}}
	answer, err := web.Post("http://localhost/v3/kv/range", "text/plain", strings.NewReader(`{"key":"AA==","range_end":"AA=="}`))
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, answer.StatusCode, string(text))
}

// TestFilesOfAccess: what cannot be trusted or read is refused, with its path. A certificate that
// lacks a host, or is about to end, is replaced; the token stays.
func TestFilesOfAccess(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "access")
	o := options{listening: listening{listen: "127.0.0.1:0", folder: folder}}
	first, err := newAccess(o)
	require.NoError(t, err)
	same, err := newAccess(o)
	require.NoError(t, err)
	require.Equal(t, first.authority, same.authority)
	o.hosts = []string{"relay.example", "10.1.2.3", "*"}
	other, err := newAccess(o)
	require.NoError(t, err)
	require.Equal(t, first.token, other.token)
	require.Equal(t, first.authority, other.authority, "clients need no other")
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(other.authority))
	for _, host := range []string{"relay.example", "10.1.2.3", "localhost", "127.0.0.1", "::1"} {
		_, err := other.certificate.current.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots})
		require.NoError(t, err, host)
		require.False(t, fits(&x509.Certificate{}, []string{host}))
	}
	nearlyOver := *other.certificate.current.Leaf
	nearlyOver.NotAfter = time.Now().Add(renewBefore - time.Minute)
	require.False(t, fits(&nearlyOver, []string{"localhost"}))

	for name, spoil := range map[string]func(path string) error{
		"token":   func(path string) error { return os.WriteFile(path, []byte("short"), 0o600) },
		"tls.key": func(path string) error { return os.Chmod(path, 0o644) },
		"tls.crt": func(path string) error { return os.WriteFile(path, []byte("no certificate"), 0o600) },
		"access":  func(string) error { return os.Chmod(filepath.Join(folder, "token"), 0o640) },
	} {
		require.NoError(t, os.RemoveAll(folder))
		_, err := newAccess(o)
		require.NoError(t, err)
		require.NoError(t, spoil(filepath.Join(folder, name)))
		_, err = newAccess(o)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "remove")
	}
}

// TestAccessOfABackupIsTemporary: where there is no --data, the files go with the process.
func TestAccessOfABackupIsTemporary(t *testing.T) {
	a, err := newAccess(options{listening: listening{listen: "127.0.0.1:0"}, backup: "backup.db"})
	require.NoError(t, err)
	path, err := a.writeKubeconfig("https://127.0.0.1:1")
	require.NoError(t, err)
	require.FileExists(t, path)
	require.Regexp(t, regexp.MustCompile(`^`+regexp.QuoteMeta(os.TempDir())), path)
	require.NoError(t, a.close())
	require.NoDirExists(t, a.folder)
}

// TestOperatorsCertificate: it is served, and the kubeconfig trusts it.
func TestOperatorsCertificate(t *testing.T) {
	folder := t.TempDir()
	certificateFile, keyFile := filepath.Join(folder, "a.crt"), filepath.Join(folder, "a.key")
	made := writeCertificate(t, certificateFile, keyFile)
	p := launch(t, "--data", filepath.Join(folder, "data"), "--resource", "pods", "--tls-cert-file", certificateFile, "--tls-private-key-file", keyFile)
	require.Equal(t, made, p.config.CAData)
	_, err := p.client().CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)

	// The files are read again. Files that do not belong together, or are damaged, change nothing.
	served := func() []byte {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(p.url, "https://"), &tls.Config{InsecureSkipVerify: true})
		require.NoError(t, err)
		defer conn.Close()
		return encoded(conn.ConnectionState().PeerCertificates[0].Raw)
	}
	require.Equal(t, made, served())
	require.NoError(t, os.WriteFile(keyFile, []byte("damaged"), 0o600))
	time.Sleep(2 * lookEvery)
	require.Equal(t, made, served())
	next := writeCertificate(t, certificateFile, keyFile)
	require.Eventually(t, func() bool { return bytes.Equal(next, served()) }, patience, 100*time.Millisecond)
}

func writeCertificate(t *testing.T, certificateFile, keyFile string) []byte {
	t.Helper()
	by, err := makeAuthority()
	require.NoError(t, err)
	certificate, key, err := by.sign([]string{"127.0.0.1"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certificateFile, certificate, 0o600))
	require.NoError(t, os.WriteFile(keyFile, key, 0o600))
	return certificate
}

// TestOwnCertificateIsMadeAnew before it ends, while the program runs, by the same authority.
func TestOwnCertificateIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := newAccess(options{listening: listening{listen: "127.0.0.1:0", folder: t.TempDir()}})
		require.NoError(t, err)
		roots := x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(a.authority))
		serials := map[string]bool{}
		for range 9 * 24 { // the authority's last year begins
			served, err := a.certificate.get(nil)
			require.NoError(t, err)
			_, err = served.Leaf.Verify(x509.VerifyOptions{DNSName: "localhost", Roots: roots, CurrentTime: time.Now()})
			require.NoError(t, err)
			serials[served.Leaf.SerialNumber.String()] = true
			time.Sleep(certificateLife / 24)
		}
		require.Greater(t, len(serials), 8)
	})
}
