package main

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// cluster is an API server with users: the relay, alice, who may do everything, and bob, who may
// do nothing.
type cluster struct {
	*apiserver.Server
	url        string
	kubeconfig string // of the relay

	mu     sync.Mutex
	tokens map[string]int // of requests, but for reviews
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	builtin.Serve(server)
	c := &cluster{Server: server, tokens: map[string]int{}}
	web := httptest.NewTLSServer(c)
	t.Cleanup(func() {
		server.Close()
		web.Close()
	})
	c.url = web.URL
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: c.url, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "relay"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	c.kubeconfig = filepath.Join(t.TempDir(), "up.kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, c.kubeconfig))
	return c
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	review := func(into any, decide func()) {
		_ = json.NewDecoder(r.Body).Decode(into)
		decide()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(into)
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		answer := &authenticationv1.TokenReview{}
		review(answer, func() {
			if name := answer.Spec.Token; name == "alice" || name == "bob" {
				answer.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: name}}
			}
		})
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		answer := &authorizationv1.SubjectAccessReview{}
		review(answer, func() { answer.Status.Allowed = answer.Spec.User == "alice" })
	case token != "alice" && token != "relay":
		apiserver.RespondError(w, apierrors.NewUnauthorized("who are you?"))
	default:
		c.mu.Lock()
		c.tokens[token]++
		c.mu.Unlock()
		c.Server.ServeHTTP(w, r)
	}
}

// relaying runs the command until the test ends, and returns a client's config without a token.
func (c *cluster) relaying(t *testing.T, flags ...string) (config *rest.Config, stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, said := io.Pipe()
	var stderr transcript
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"relay", "--kubeconfig", c.kubeconfig, "--listen", "127.0.0.1:0"}, flags...), said, &stderr)
		_ = said.Close()
	}()
	stop = sync.OnceValue(func() string {
		cancel()
		require.Equal(t, exitOK, <-code, &stderr)
		return stderr.String()
	})
	t.Cleanup(func() { stop() })
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	require.NoError(t, err, &stderr)
	found := regexp.MustCompile(`^relaying (https://[0-9.:]+) on (https?://[0-9.:]+), with copies of (.+)\n`).FindStringSubmatch(first)
	require.NotNil(t, found, first)
	require.Equal(t, c.url, found[1])
	second, err := lines.ReadString('\n')
	require.NoError(t, err)
	config = &rest.Config{Host: found[2], QPS: -1}
	if strings.HasPrefix(config.Host, "https") {
		command := regexp.MustCompile(`^kubectl --server (.+) --certificate-authority (.+) get pods -A\n`).FindStringSubmatch(second)
		require.NotNil(t, command, second)
		config.CAFile = command[2]
	}
	return config, stop
}

func (c *cluster) as(t *testing.T, config *rest.Config, token string) kubernetes.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// TestRelay: clients use the address of the relay with their own tokens. They read out of its
// copies what they may read, write to the cluster under their own names, and see its numbers.
func TestRelay(t *testing.T) {
	c := newCluster(t)
	data := filepath.Join(t.TempDir(), "data")
	audit := filepath.Join(t.TempDir(), "audit.log")
	config, stop := c.relaying(t, "--data", data, "--status", "127.0.0.1:0", "--v", "1", "--audit-log-path", audit)
	alice := c.as(t, config, "alice")
	made, err := alice.CoreV1().Pods("default").Create(t.Context(), pod("web"), metav1.CreateOptions{})
	require.NoError(t, err)
	list, err := alice.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, made.UID, list.Items[0].UID)
	require.Equal(t, 1, c.tokens["alice"], "the write alone came to the cluster")

	_, err = c.as(t, config, "bob").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = c.as(t, config, "eve").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)
	for _, path := range []string{"/readyz", "/livez"} {
		_, err = c.as(t, config, "").Discovery().RESTClient().Get().AbsPath(path).DoRaw(t.Context())
		require.NoError(t, err, path)
	}
	text, err := alice.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.NoError(t, err)
	for _, line := range []string{
		`tributary_relay_copies{phase="serving",server="relay"} 1`, `tributary_relay_requests_total{road="copy",server="relay"} 1`,
		`tributary_apiserver_ready{group="",resource="pods",server="relay"} 1`,
	} {
		require.Contains(t, string(text), line)
	}
	require.Contains(t, string(text), "tributary_reviews_")
	_, err = c.as(t, config, "bob").Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	require.True(t, apierrors.IsForbidden(err), "%v", err)

	watcher, err := alice.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	said := stop()
	require.Contains(t, said, "status page on http://")
	require.Contains(t, said, "Copying")
	_, open := <-watcher.ResultChan()
	require.False(t, open, "the watch has a proper end")
	lines, err := os.ReadFile(audit)
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(lines), "\n"), string(lines))
	for i, want := range []string{
		`"user":"alice","verb":"list","version":"v1","resource":"pods","decision":"allow","code":200,"source":"cache"}`,
		`"user":"bob","verb":"list","version":"v1","resource":"pods","decision":"forbid","code":403,"source":"none"}`,
		`"verb":"list","version":"v1","resource":"pods","decision":"forbid","code":401,"source":"none"}`, `"verb":"watch"`,
	} {
		require.Contains(t, strings.Split(string(lines), "\n")[i], want)
	}
	info, err := os.Stat(filepath.Join(data, "copies"))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)
}

// TestScopedRelay: with --resource, the copies are of the selected objects.
func TestScopedRelay(t *testing.T) {
	c := newCluster(t)
	config, _ := c.relaying(t, "--resource", "pods", "--field-selector", "spec.nodeName=n1", "--resource", "services", "--namespace", "default", "--insecure")
	require.True(t, strings.HasPrefix(config.Host, "http://"))
	alice := c.as(t, config, "alice")
	for i, options := range []metav1.ListOptions{{FieldSelector: "spec.nodeName=n1"}, {}} {
		_, err := alice.CoreV1().Pods("").List(t.Context(), options)
		require.NoError(t, err)
		require.Equal(t, i, c.tokens["alice"])
	}
	_, err := c.as(t, config, "").CoreV1().Services("default").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err, "--insecure asks for nothing")
	_, err = c.as(t, config, "").CoreV1().Services("").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)
}

// TestRelayChecksItsResources: a name that the cluster does not serve so ends the start, and the
// error says what to write.
func TestRelayChecksItsResources(t *testing.T) {
	c := newCluster(t)
	for flag, name := range map[string]string{"--resource": "deployments", "--aggregated": "Deployment"} {
		var stderr transcript
		require.Equal(t, exitFailed, run(t.Context(), []string{"relay", "--kubeconfig", c.kubeconfig, "--listen", "127.0.0.1:0", flag, name}, io.Discard, &stderr))
		require.Contains(t, stderr.String(), "write deployments.apps")
	}
}

// TestDeployedRelay: the flags of the manifest are the command's.
func TestDeployedRelay(t *testing.T) {
	text, err := os.ReadFile("../../examples/node-agent/deploy/relay/relay.yaml")
	require.NoError(t, err)
	document, _, _ := strings.Cut(string(text), "\n---\n")
	var set appsv1.DaemonSet
	require.NoError(t, yaml.Unmarshal([]byte(document), &set))
	args := set.Spec.Template.Spec.Containers[0].Args
	require.Equal(t, "relay", args[0])
	o, err := parseRelay(args[1:], io.Discard)
	require.NoError(t, err)
	require.Len(t, o.scopes, 1)
	require.Equal(t, "pods?fieldSelector=spec.nodeName=$(NODE_NAME)", o.scopes[0].String())
}
