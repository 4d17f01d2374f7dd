package e2e_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// asked is an API server, or a copy behind reviews, as a client sees it.
type asked struct {
	url    string
	client *http.Client
}

func (a asked) open(t require.TestingT, ctx context.Context, path, token string) *http.Response {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "application/json")
	answer, err := a.client.Do(request)
	require.NoError(t, err)
	return answer
}

// get returns the code, and the message of a refusal.
func (a asked) get(t require.TestingT, ctx context.Context, path, token string) (code int, message string) {
	answer := a.open(t, ctx, path, token)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	if answer.StatusCode == http.StatusOK {
		return answer.StatusCode, ""
	}
	var status metav1.Status
	require.NoError(t, json.Unmarshal(body, &status), "%s", body)
	return answer.StatusCode, status.Message
}

// TestReviews: a copy behind reviews answers and refuses as kube-apiserver does, for users of RBAC
// and of the Node authorizer, with selectors. Its own user has ClusterRole system:auth-delegator
// alone. A watch ends when its role is taken away, and goes on while the server is stopped.
func TestReviews(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const nodeToken = "token-of-node"
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	require.NoError(t, os.WriteFile(tokens, []byte(cluster.Admin+`,admin,admin,"system:masters"`+"\n"+
		cluster.Agent+","+cluster.AgentUser+","+cluster.AgentUser+"\n"+
		nodeToken+`,system:node:node-1,node-1,"system:nodes"`+"\n"), 0o600))
	c := cluster.Start(t, "--authorization-mode=Node", "--token-auth-file="+tokens)
	admin, err := kubernetes.NewForConfig(c.Server.Config(cluster.Admin))
	require.NoError(t, err)
	account, err := admin.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	reader := c.AccountToken(account, time.Now().Add(time.Hour))

	copied, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.Serve(copied, builtin.Pods())
	access, err := reviews.New(c.Server.Config(cluster.Agent), reviews.WithRenewal(time.Second), reviews.WithRefusal(0))
	require.NoError(t, err)
	listener := httptest.NewServer(access.Handler(copied))
	t.Cleanup(listener.Close)
	t.Cleanup(copied.Close)
	behind := asked{listener.URL, listener.Client()}
	web, err := rest.HTTPClientFor(c.Server.Config(""))
	require.NoError(t, err)
	direct := asked{"https://" + c.Server.Address(), web}

	code, message := behind.get(t, ctx, "/api/v1/pods", reader)
	require.Equal(t, 500, code)
	require.Contains(t, message, "verb create on tokenreviews.authentication.k8s.io, as ClusterRole system:auth-delegator does")
	_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "relay"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:auth-delegator"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: cluster.AgentUser}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(now *assert.CollectT) {
		code, _ := behind.get(now, ctx, "/api/v1/pods", reader)
		require.Equal(now, 403, code)
	}, 20*time.Second, 100*time.Millisecond)

	const pods = "/api/v1/namespaces/default/pods"
	_, err = admin.RbacV1().Roles("default").Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}, ResourceNames: []string{"a"}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	binding, err := admin.RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "reader"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(now *assert.CollectT) {
		code, _ := behind.get(now, ctx, pods, reader)
		require.Equal(now, 200, code)
	}, 20*time.Second, 100*time.Millisecond)

	// The same answers, from both.
	allowed := 0
	for _, token := range []string{reader, nodeToken, cluster.Agent, cluster.Admin, "wrong"} {
		for _, path := range []string{
			pods, "/api/v1/pods", pods + "/a", pods + "/b", pods + "?watch=1&timeoutSeconds=1", "/api/v1/pods?watch=1&timeoutSeconds=1", pods + "?fieldSelector=metadata.name%3Da",
			"/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1", "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-2",
			"/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1&watch=1&timeoutSeconds=1&labelSelector=a+in+(b,c)",
		} {
			wantCode, wantMessage := direct.get(t, ctx, path, token)
			code, message := behind.get(t, ctx, path, token)
			assert.Equal(t, wantCode, code, path)
			assert.Equal(t, wantMessage, message, path)
			if code == http.StatusOK {
				allowed++
			}
		}
	}
	require.Equal(t, 3+2+0+8, allowed, "the account's, the node's and the administrator's")

	// The server stops, and goes on.
	stream := behind.open(t, ctx, pods+"?watch=1", reader)
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, stream.Body)
		ended <- err
	}()
	c.Server.Pause()
	for range 5 {
		time.Sleep(time.Second) // the server is stopped in real time
		code, _ := behind.get(t, ctx, pods, reader)
		require.Equal(t, 200, code, "the decision holds")
	}
	c.Server.Resume()
	require.Eventually(t, func() bool { return access.Status().Err() == nil }, 30*time.Second, 100*time.Millisecond)
	require.Equal(t, 1, access.Status().Watches)

	// The right goes, and the token.
	require.NoError(t, admin.RbacV1().RoleBindings("default").Delete(ctx, binding.Name, metav1.DeleteOptions{}))
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("the watch outlives its right")
	}
	require.EventuallyWithT(t, func(now *assert.CollectT) { // the right to list is another
		code, _ := behind.get(now, ctx, pods, reader)
		require.Equal(now, 403, code)
	}, 30*time.Second, 100*time.Millisecond)
	require.NoError(t, admin.CoreV1().ServiceAccounts("default").Delete(ctx, account.Name, metav1.DeleteOptions{}))
	require.EventuallyWithT(t, func(now *assert.CollectT) {
		code, _ := behind.get(now, ctx, pods, reader)
		require.Equal(now, 401, code)
	}, 30*time.Second, 100*time.Millisecond)
}
