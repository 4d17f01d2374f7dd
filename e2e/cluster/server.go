package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// Server is one API server.
type Server struct {
	cluster *Cluster
	process *Process
	address string
}

func startServer(c *Cluster, etcdURL string, flags []string) *Server {
	c.t.Helper()
	s := &Server{cluster: c, address: FreeAddress(c.t)}
	binary, arguments := c.command(c, s.address, etcdURL)
	name := filepath.Base(binary) + "-" + strconv.Itoa(c.servers)
	s.process = NewProcess(c.t, name, binary, append(arguments, flags...))
	s.Restart()
	return s
}

// kubeAPIServer is the command of kube-apiserver.
func kubeAPIServer(c *Cluster, address, etcdURL string) (binary string, arguments []string) {
	c.t.Helper()
	_, port, err := net.SplitHostPort(address)
	require.NoError(c.t, err)
	return c.binaries.apiServer, []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1", "--secure-port=" + port, "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		"--tls-cert-file=" + c.file("server.crt"), "--tls-private-key-file=" + c.file("server.key"),
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + c.file("accounts.key"), "--service-account-signing-key-file=" + c.file("accounts.key"),
		"--token-auth-file=" + c.file("tokens.csv"), "--authorization-mode=RBAC",
		// No controller makes the default service account that this plugin demands of every pod.
		"--disable-admission-plugins=ServiceAccount,MutatingAdmissionWebhook,ValidatingAdmissionWebhook",
	}
}

// Kill ends the server at once, as by kill -9.
func (s *Server) Kill() { s.process.Kill() }

// Restart starts the server after Kill, at the same address, and returns the moment at which it
// called itself ready.
func (s *Server) Restart() (ready time.Time) {
	s.cluster.t.Helper()
	s.process.Start()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.roots()}, DisableKeepAlives: true,
	}}
	waitFor(s.cluster.t, s.process, func() bool {
		request, err := http.NewRequest(http.MethodGet, "https://"+s.address+"/readyz", nil)
		if err != nil {
			return false
		}
		request.Header.Set("Authorization", "Bearer "+Admin)
		answer, err := client.Do(request)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		ready = time.Now()
		return answer.StatusCode == http.StatusOK
	})
	return ready
}

// Pause stops the server where it stands: connections stay open and nothing is answered.
func (s *Server) Pause() { s.process.Signal(syscall.SIGSTOP) }

// Resume lets it go on after Pause.
func (s *Server) Resume() { s.process.Signal(syscall.SIGCONT) }

// Address is the host and port that it listens on.
func (s *Server) Address() string { return s.address }

// Config is a client's configuration for this server, with a token such as [Admin] or none, and no
// limit to the rate of requests. Each REST client made from it has connections of its own, which
// are closed when the test ends.
func (s *Server) Config(token string) *rest.Config { return s.ConfigVia(s.address, token) }

// ConfigVia is Config for a client that reaches the server at another address, such as a proxy's.
func (s *Server) ConfigVia(address, token string) *rest.Config {
	return &rest.Config{
		Host: "https://" + address, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.cluster.authority.certificate},
		Dial:            trackedDial(s.cluster.t),
	}
}

func (s *Server) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.cluster.authority.certificate)
	return pool
}

// trackedDial dials, and closes with the test what was dialled: clients keep idle connections, and
// with them goroutines, that nothing else ends.
func trackedDial(t testing.TB) func(context.Context, string, string) (net.Conn, error) {
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, connection := range open {
			_ = connection.Close()
		}
	})
	dialer := &net.Dialer{Timeout: 30 * time.Second}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			open = append(open, connection)
		}
		return connection, err
	}
}
