package e2e_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/e2e/cluster"
)

// rememberedToken is how long kube-apiserver goes on to take a token that it has let in.
const rememberedToken = 10 * time.Second

// TestRelayRightsWithdrawn: a right, or a token, is taken away in the middle of watches. They end
// within the time that the relay states, over HTTP/1.1 and HTTP/2, by tokens and by certificates,
// busy and idle. The next request is a 403 or a 401, and other clients' watches go on.
func TestRelayRightsWithdrawn(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	w := newWorld(t, c)
	c.AllowRelay()
	w.fill(10)
	const renewal, slack = 2 * time.Second, 2 * time.Second
	authority, _ := c.Certificate()
	r := w.relayOfServer([]reviews.Option{reviews.WithRenewal(renewal), reviews.WithRefusal(0), reviews.WithClientCA(authority)})
	account := w.account(t, "leaving")
	reading := []rbacv1.PolicyRule{{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods", "configmaps"}}}
	grant := func() { w.bind(t, "leaving", "", reading) }
	grant()
	token := func() *rest.Config { return r.config(c.AccountToken(account, time.Now().Add(time.Hour))) }
	certified := r.config("")
	certified.CertData, certified.KeyData = c.ClientCertificate("certified", time.Now().Add(time.Hour))
	w.permit("certified", "certified", reading...)
	for _, config := range []*rest.Config{token(), certified} { // until the server knows both
		require.Eventually(t, func() bool { return refusal(t, config) == 0 }, 10*time.Second, 20*time.Millisecond)
	}
	staying := w.openWatch(t, r.config(cluster.Admin), "pods", "")
	ways := map[string]*rest.Config{"token": token(), "certificate": certified}
	for name, config := range map[string]*rest.Config{"token, HTTP/1.1": token(), "certificate, HTTP/1.1": rest.CopyConfig(certified)} {
		config.NextProtos = []string{"http/1.1"}
		ways[name] = config
	}
	watches := map[string]*openedWatch{}
	for name, config := range ways {
		watches[name+", busy"] = w.openWatch(t, config, "pods", "")
		watches[name+", idle"] = w.openWatch(t, config, "configmaps", "default")
	}
	writing := w.startWriter(20*time.Millisecond, false)
	pass(renewal + time.Second) // they outlive a renewal
	for name, one := range watches {
		require.False(t, one.hasEnded(), name)
	}
	for _, name := range []string{"leaving", "certified"} {
		w.withdrawAccount(t, name)
	}
	began := time.Now()
	for name, one := range watches {
		select {
		case <-one.ended:
			require.NoError(t, one.failed, "%s: the end is proper", name)
		case <-time.After(time.Until(began.Add(renewal + slack))):
			require.Fail(t, "a watch outlives its right", "%s, %s after it was taken away", name, time.Since(began))
		}
	}
	t.Logf("%d watches ended within %s", len(watches), time.Since(began).Round(10*time.Millisecond))
	for name, config := range ways {
		require.Equal(t, http.StatusForbidden, refusal(t, config), name)
	}
	require.False(t, staying.hasEnded(), "another client's watch")
	writing.end()

	// It is given again, and the token goes.
	require.NoError(t, w.client.RbacV1().ClusterRoles().Delete(t.Context(), "leaving", metav1.DeleteOptions{}))
	grant()
	var again *openedWatch
	require.Eventually(t, func() bool { return refusal(t, ways["token"]) == 0 }, 10*time.Second, 20*time.Millisecond)
	again = w.openWatch(t, ways["token"], "pods", "")
	require.NoError(t, w.client.CoreV1().ServiceAccounts("default").Delete(t.Context(), "leaving", metav1.DeleteOptions{}))
	began = time.Now()
	select {
	case <-again.ended:
	case <-time.After(rememberedToken + renewal + slack):
		require.Fail(t, "a watch outlives its token", "%s after it was revoked", time.Since(began))
	}
	t.Logf("the watch of a token ended %s after that was revoked", time.Since(began).Round(10*time.Millisecond))
	require.Equal(t, http.StatusUnauthorized, refusal(t, ways["token"]))
	require.False(t, staying.hasEnded(), "another client's watch")
}

// TestRelayClientCertificates: the name and the groups of a client certificate count as on the API
// server. A certificate that is over, or of another authority, is a 401.
func TestRelayClientCertificates(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	w := newWorld(t, c)
	c.AllowRelay()
	w.fill(5)
	file, _ := c.Certificate()
	checks := c.AddServer(c.Etcd.URL(), "--client-ca-file="+file)
	r := w.relayOfServer([]reviews.Option{reviews.WithClientCA(file), reviews.WithRefusal(0)})
	reading := rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	w.permit("by-name", "named", reading)
	certified := func(config *rest.Config, user string, expires time.Time, groups ...string) *rest.Config {
		config.CertData, config.KeyData = c.ClientCertificate(user, expires, groups...)
		return config
	}
	hour := time.Now().Add(time.Hour)
	for _, one := range []struct {
		name    string
		expires time.Time
		user    string
		groups  []string
		token   string
		code    int
	}{
		{"of a user with rights", hour, "named", nil, "", http.StatusOK},
		{"of another user", hour, "unnamed", nil, "", http.StatusForbidden},
		{"of a group with rights", hour, "unnamed", []string{"system:masters"}, "", http.StatusOK},
		{"that is over", time.Now().Add(-time.Minute), "named", nil, "", http.StatusUnauthorized},
		{"that is over, with a good token", time.Now().Add(-time.Minute), "unnamed", nil, cluster.Admin, http.StatusOK},
		{"with a token of more rights", hour, "unnamed", nil, cluster.Admin, http.StatusForbidden},
		{"with a wrong token", hour, "named", nil, "a wrong token", http.StatusOK},
	} {
		direct := certified(checks.Config(one.token), one.user, one.expires, one.groups...)
		through := certified(r.config(one.token), one.user, one.expires, one.groups...)
		for _, path := range []string{"/api/v1/pods", "/api/v1/namespaces/default/pods/" + podName(1), "/api/v1/pods?watch=1&timeoutSeconds=1"} {
			want, _ := codeOf(t, direct, path)
			require.Equal(t, one.code, want, "a certificate %s, at the API server: %s", one.name, path)
			got, _ := codeOf(t, through, path)
			require.Equal(t, want, got, "a certificate %s: %s", one.name, path)
		}
	}
	// The certificate is the relay's to verify, and not to pass on.
	code, _ := codeOf(t, certified(r.config(""), "unnamed", hour, "system:masters"), "/api/v1/namespaces/default/pods/"+podName(1)+"/status")
	require.Equal(t, http.StatusForbidden, code)
}

// openedWatch is a watch, and how it ended.
type openedWatch struct {
	ended  chan struct{}
	failed error // once it has ended
}

func (o *openedWatch) hasEnded() bool { return closed(o.ended) }

// openWatch opens a watch that has been answered.
func (w *world) openWatch(t testing.TB, config *rest.Config, resource, namespace string) *openedWatch {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := client.CoreV1().RESTClient().Get().Namespace(namespace).Resource(resource).
		Param("watch", "true").Param("resourceVersion", "0").MaxRetries(0).Watch(ctx)
	require.NoError(t, err)
	o := &openedWatch{ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		for e := range stream.ResultChan() {
			if e.Type == watch.Error {
				o.failed = apierrors.FromObject(e.Object)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		stream.Stop()
		<-o.ended
	})
	return o
}

// refusal is the code with which a list of pods is refused; 0 if it is not.
func refusal(t testing.TB, config *rest.Config) int {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 1})
	if err == nil {
		return 0
	}
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	return int(status.Status().Code)
}
