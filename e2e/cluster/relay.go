package cluster

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmd "k8s.io/client-go/tools/clientcmd/api/v1"
)

// Relay is a `tributary relay` before an API server, or before another relay.
type Relay struct {
	*Process
	cluster *Cluster
	address string
}

// StartRelay starts a relay of an upstream, from a binary of tributary, with the flags added. It
// has the certificate of the API servers, and returns when the relay calls itself ready.
func (c *Cluster) StartRelay(binary string, upstream *rest.Config, flags ...string) *Relay {
	c.t.Helper()
	c.servers++
	name := "relay-" + strconv.Itoa(c.servers)
	kubeconfig := filepath.Join(c.files, name+".kubeconfig")
	WriteKubeconfig(c.t, kubeconfig, upstream)
	r := &Relay{cluster: c, address: FreeAddress(c.t)}
	r.Process = NewProcess(c.t, name, binary, append([]string{
		"relay", "--kubeconfig=" + kubeconfig, "--listen=" + r.address,
		"--tls-cert-file=" + c.file("server.crt"), "--tls-private-key-file=" + c.file("server.key"),
	}, flags...))
	r.Restart()
	return r
}

// Restart starts the relay after Kill, at the same address, and returns the moment at which it
// called itself ready.
func (r *Relay) Restart() (ready time.Time) {
	r.cluster.t.Helper()
	r.Start()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: r.cluster.Server.roots()}, DisableKeepAlives: true,
	}}
	waitFor(r.cluster.t, r.Process, func() bool {
		answer, err := client.Get("https://" + r.address + "/readyz")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		ready = time.Now()
		return answer.StatusCode == http.StatusOK
	})
	return ready
}

// Stop ends the relay as an operator does, and waits for its end.
func (r *Relay) Stop() {
	r.Signal(syscall.SIGTERM)
	select {
	case <-r.Ended():
	case <-time.After(30 * time.Second):
		r.cluster.t.Errorf("%s has not ended 30 s after SIGTERM", r.name)
	}
	r.Kill()
}

// Pause stops the relay where it stands.
func (r *Relay) Pause() { r.Signal(syscall.SIGSTOP) }

// Resume lets it go on after Pause.
func (r *Relay) Resume() { r.Signal(syscall.SIGCONT) }

// PID is the process's.
func (r *Relay) PID() int { return r.pid }

// Address is the host and port that it listens on.
func (r *Relay) Address() string { return r.address }

// Config is a client's configuration, as that of [Server.Config].
func (r *Relay) Config(token string) *rest.Config {
	return r.cluster.Server.ConfigVia(r.address, token)
}

// AllowRelay gives [AgentUser] the rights of a relay: to read all, and to ask for reviews.
func (c *Cluster) AllowRelay() {
	c.t.Helper()
	client, err := kubernetes.NewForConfig(c.Server.Config(Admin))
	require.NoError(c.t, err)
	const all = "relay-reads"
	_, err = client.RbacV1().ClusterRoles().Create(c.t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: all},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
	}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	for _, role := range []string{all, "system:auth-delegator"} {
		_, err = client.RbacV1().ClusterRoleBindings().Create(c.t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "relay-"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: AgentUser}},
		}, metav1.CreateOptions{})
		require.NoError(c.t, err)
	}
}

// Certificate returns the files of the certificate and the key that the servers have. It is its own
// authority.
func (c *Cluster) Certificate() (certificate, key string) {
	return c.file("server.crt"), c.file("server.key")
}

// WriteKubeconfig writes a configuration with a token into a file.
func WriteKubeconfig(t testing.TB, path string, config *rest.Config) {
	t.Helper()
	const name = "upstream"
	document, err := json.Marshal(clientcmd.Config{ // JSON is YAML
		APIVersion: "v1", Kind: "Config", CurrentContext: name,
		Clusters: []clientcmd.NamedCluster{{Name: name, Cluster: clientcmd.Cluster{
			Server: config.Host, CertificateAuthorityData: config.CAData,
		}}},
		AuthInfos: []clientcmd.NamedAuthInfo{{Name: name, AuthInfo: clientcmd.AuthInfo{Token: config.BearerToken}}},
		Contexts:  []clientcmd.NamedContext{{Name: name, Context: clientcmd.Context{Cluster: name, AuthInfo: name}}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, document, 0o600))
}
