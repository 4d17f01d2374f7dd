package cluster

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Cluster is an etcd and the API servers on it.
type Cluster struct {
	Etcd   *Etcd
	Server *Server // the first one; see AddServer

	t         testing.TB
	binaries  binaries
	command   serverCommand
	authority *authority
	files     string // the folder of what servers share: certificates, keys, tokens
	servers   int
}

// serverCommand is how a server is started that listens on address.
type serverCommand func(c *Cluster, address, etcdURL string) (binary string, arguments []string)

// Tokens of the users that every server knows. Admin may do anything; Agent and Nobody what a test
// grants them. Node is a node, as the Node authorizer knows it.
const (
	Admin  = "token-of-admin"
	Agent  = "token-of-agent"
	Nobody = "token-of-nobody"
	Node   = "token-of-node"
)

// Users, as RBAC rules name them.
const (
	AgentUser  = "agent"
	NobodyUser = "nobody"
	NodeUser   = "system:node:node-1"
)

const users = Admin + `,admin,admin,"system:masters"` + "\n" +
	Agent + "," + AgentUser + "," + AgentUser + "\n" +
	Nobody + "," + NobodyUser + "," + NobodyUser + "\n" +
	Node + "," + NodeUser + "," + NodeUser + ",system:nodes\n"

// Start builds what is not yet in the cache (minutes), starts an etcd and an API server with the
// given flags added, and returns when both are ready (seconds). All of it ends with the test.
func Start(t testing.TB, flags ...string) *Cluster {
	t.Helper()
	return start(t, kubeAPIServer, flags)
}

// StartTributary is Start with `tributary serve` for each API server, from a binary of it. It knows
// no users: whoever comes may do anything.
func StartTributary(t testing.TB, binary string) *Cluster {
	t.Helper()
	return start(t, func(c *Cluster, address, etcdURL string) (string, []string) {
		return binary, []string{
			"serve", "--insecure", "--etcd=" + etcdURL, "--listen=" + address,
			"--tls-cert-file=" + c.file("server.crt"), "--tls-private-key-file=" + c.file("server.key"),
		}
	}, nil)
}

func start(t testing.TB, command serverCommand, flags []string) *Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane, and may have to build it: not under -short")
	}
	c := &Cluster{t: t, command: command, files: t.TempDir()}
	var err error
	c.binaries, err = build(t.Logf)
	require.NoError(t, err, "build the control plane")
	c.authority, err = newAuthority(c.files)
	require.NoError(t, err, "make certificates")
	c.write("tokens.csv", users)
	c.Etcd = startEtcd(t, c.binaries.etcd)
	c.Server = c.AddServer(c.Etcd.URL(), flags...)
	return c
}

// AddServer starts one more API server, on the etcd at etcdURL, and waits until it is ready. A
// proxy's address there puts the proxy between the two.
func (c *Cluster) AddServer(etcdURL string, flags ...string) *Server {
	c.t.Helper()
	c.servers++
	return startServer(c, etcdURL, flags)
}

func (c *Cluster) write(name, content string) {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(c.file(name), []byte(content), 0o600))
}

func (c *Cluster) file(name string) string { return filepath.Join(c.files, name) }

// FreeAddress finds a loopback port to listen on. It keeps clear of the range from which the kernel
// picks the ports of outgoing connections: a server that is down for a while would find its port
// taken by a client, or a client that tries again and again could be connected to itself.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := net.JoinHostPort("127.0.0.1", randomPort())
		listener, err := net.Listen("tcp", address)
		if err == nil {
			require.NoError(t, listener.Close())
			return address
		}
	}
	t.Fatal("no free loopback port")
	return ""
}

// tail is the end of a log, to be shown when a test has failed.
func tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
