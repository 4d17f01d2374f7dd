package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/reflector"
)

// shownWithin is how long Status may need to show what a request was answered.
const shownWithin = 100 * time.Millisecond

// A5: what only an operator can mend shows in Status with its cause, and is recovered from without
// a restart.
func TestAccess(t *testing.T) {
	t.Parallel() // like all that mostly wait, with a control plane of their own
	c := cluster.Start(t)
	w := newWorld(t, c)
	w.fill(nodes)
	result := table("what", "shown as", "after the answer", "fresh again after", "requests in between")
	t.Run("group", func(t *testing.T) { // all at once: they wait, for the most part
		t.Run("forbidden from the start", func(t *testing.T) { forbiddenFromTheStart(t, w, result) })
		t.Run("list alone", func(t *testing.T) { listAlone(t, w, result) })
		t.Run("permission withdrawn", func(t *testing.T) { permissionWithdrawn(t, w, result) })
		t.Run("token expired", func(t *testing.T) { tokenExpired(t, w, result) })
		t.Run("final errors", func(t *testing.T) { finalErrors(t, w) })
	})
	t.Logf("A5\n%s", result)
}

func forbiddenFromTheStart(t *testing.T, w *world, result *rows) {
	t.Parallel()
	f := w.followPods(t, w.cluster.Server.Config(cluster.Nobody), "", nil)
	line := watchStatus(t, f)
	untilClass(t, line, reflector.Forbidden, 0, 5*time.Second)
	shown := sinceAnswer(t, f, line, http.StatusForbidden, reflector.Forbidden)
	require.True(t, apierrors.IsForbidden(f.status().Err), "%v", f.status().Err)

	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := f.waitSynced(short)
	require.True(t, apierrors.IsForbidden(err), "WaitSynced names the cause: %v", err)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	pass(30*time.Second - time.Since(line.began))
	require.LessOrEqual(t, answered(f, http.StatusForbidden), 10, "as seldom as client-go%s", brief(f.sent().log()))
	granted := time.Now()
	w.grant(cluster.NobodyUser)
	requireSynced(t, f, 6*time.Second) // 5 s, and one for the server to read the role
	recovered := time.Since(granted)
	requireWhole(t, f, 5*time.Second)
	require.Equal(t, reflector.OK, f.status().Class)
	result.add("403 from the start", reflector.Forbidden, shown, recovered.Round(10*time.Millisecond), answered(f, http.StatusForbidden))
}

// listAlone: lists keep the copy of a user who may list and not watch, and Status says that watches
// are refused.
func listAlone(t *testing.T, w *world, result *rows) {
	t.Parallel()
	account := w.account(t, "lister")
	lister := serviceaccount + account.Name
	w.permit("lists-pods", lister, rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"pods"}})
	config := w.cluster.Server.Config(w.cluster.AccountToken(account, time.Now().Add(time.Hour)))
	require.Eventually(t, func() bool { // the server has read the role
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 1})
		return err == nil
	}, 10*time.Second, 50*time.Millisecond)
	f := w.followPods(t, config, "", nil)
	requireSynced(t, f, 2*time.Second)
	untilClass(t, watchStatus(t, f), reflector.Forbidden, 0, 5*time.Second)
	fresh := w.freshness(t, time.Now(), 35*time.Second, await(f, nodeName(0)))[0]
	require.Equal(t, reflector.Forbidden, f.status().Class, "it still cannot watch")
	w.permit("watches-pods", lister, rbacv1.PolicyRule{Verbs: []string{"watch"}, APIGroups: []string{""}, Resources: []string{"pods"}})
	granted := time.Now()
	require.Eventually(t, func() bool { return f.status().Class != reflector.Forbidden }, 20*time.Second, 5*time.Millisecond)
	// The bookmark of a quiet collection, once a minute, proves that no change was missed.
	require.Eventually(t, func() bool { return f.status().Class == reflector.OK }, 2*time.Minute, 5*time.Millisecond)
	requireWhole(t, f, 5*time.Second)
	t.Logf("list alone: a write seen after %s; well %s after watch was granted", fresh.Round(time.Millisecond), time.Since(granted).Round(time.Millisecond))
	result.add("403 of watches alone", reflector.Forbidden, "-", time.Since(granted).Round(10*time.Millisecond), answered(f, http.StatusForbidden))
}

// serviceaccount is what the names of the users behind service accounts of the default namespace
// begin with.
const serviceaccount = "system:serviceaccount:default:"

func permissionWithdrawn(t *testing.T, w *world, result *rows) {
	t.Parallel()
	w.grantAccount(t, "withdrawn")
	account := w.account(t, "withdrawn")
	config := w.cluster.Server.Config(w.cluster.AccountToken(account, time.Now().Add(time.Hour)))
	f := w.followPods(t, config, "", nil, reflector.WithWatchTimeout(5*time.Second))
	requireSynced(t, f, 10*time.Second)
	line := watchStatus(t, f)
	w.withdrawAccount(t, "withdrawn")
	// The server does not end a watch that it has let in; the next one is refused.
	untilClass(t, line, reflector.Forbidden, 0, 15*time.Second)
	shown := sinceAnswer(t, f, line, http.StatusForbidden, reflector.Forbidden)
	require.GreaterOrEqual(t, f.account().held, nodes, "the content stays")
	granted := time.Now()
	w.grantAccount(t, "withdrawn")
	recovered := w.freshness(t, granted, 40*time.Second, await(f, nodeName(0)))
	require.Equal(t, 1, lists(f), "a refused watch goes on from its version")
	result.add("403 while watching", reflector.Forbidden, shown, recovered[0].Round(10*time.Millisecond), answered(f, http.StatusForbidden))
}

func tokenExpired(t *testing.T, w *world, result *rows) {
	t.Parallel()
	w.grantAccount(t, "expiring")
	account := w.account(t, "expiring")
	path := filepath.Join(t.TempDir(), "token")
	write := func(lifetime time.Duration) {
		token := w.cluster.AccountToken(account, time.Now().Add(lifetime))
		require.NoError(t, os.WriteFile(path, []byte(token), 0o600))
	}
	write(5*time.Second - time.Minute) // the server allows for clocks that differ by a minute
	config := w.cluster.Server.Config("")
	config.BearerTokenFile = path
	f := w.followPods(t, config, "", nil, reflector.WithWatchTimeout(5*time.Second))
	requireSynced(t, f, 10*time.Second)
	line := watchStatus(t, f)
	// The server remembers for ten seconds whom it has let in.
	untilClass(t, line, reflector.Unauthorized, 0, 30*time.Second)
	shown := sinceAnswer(t, f, line, http.StatusUnauthorized, reflector.Unauthorized)
	require.True(t, apierrors.IsUnauthorized(f.status().Err), "%v", f.status().Err)
	rotated := time.Now()
	write(time.Hour)
	// client-go reads the file again after 50 s at the latest, and offers no way to make it sooner
	// by this field.
	recovered := w.freshness(t, rotated, 90*time.Second, await(f, nodeName(0)))
	require.Equal(t, 1, lists(f))
	result.add("401, token rotated in its file", reflector.Unauthorized, shown, recovered[0].Round(10*time.Millisecond), answered(f, http.StatusUnauthorized))
}

// A5: a resource is deleted with its objects, and made again.
func TestResourceDeleted(t *testing.T) {
	t.Parallel()
	onServers(t, resourceDeleted)
}

func resourceDeleted(t *testing.T, on server) {
	t.Parallel()
	w := newWorld(t, on.start(t))
	w.defineWidgets()
	w.fillWidgets(10)
	f := w.followWidgets(t, w.cluster.Server.Config(cluster.Agent), "", nil)
	requireSynced(t, f, 10*time.Second)
	line := watchStatus(t, f)
	definitions := w.dynamics.Resource(crdResource)
	require.NoError(t, definitions.Delete(t.Context(), widgetDefinition().GetName(), metav1.DeleteOptions{}))
	untilClass(t, line, reflector.NotFound, 0, 30*time.Second)
	shown := sinceAnswer(t, f, line, http.StatusNotFound, reflector.NotFound)
	require.True(t, apierrors.IsNotFound(f.status().Err), "%v", f.status().Err)
	pass(5 * time.Second)
	require.Eventually(t, func() bool {
		_, err := definitions.Create(t.Context(), widgetDefinition(), metav1.CreateOptions{})
		return err == nil
	}, 20*time.Second, 50*time.Millisecond)
	created := time.Now()
	require.Eventually(t, func() bool {
		_, err := w.dynamics.Resource(widgetResource).Namespace("default").Create(t.Context(), newWidget("after", nodeName(0)), metav1.CreateOptions{})
		return err == nil
	}, 20*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool { return f.find("default/after") != "" }, 60*time.Second, 5*time.Millisecond)
	recovered := time.Since(created)
	requireWhole(t, f, 5*time.Second)
	t.Logf("A5: 404 shown %s after the answer; fresh again %s after the resource was made again, by %d requests",
		shown, recovered.Round(10*time.Millisecond), answered(f, http.StatusNotFound))
}

// finalErrors: with that option Run returns the error.
func finalErrors(t *testing.T, w *world) {
	t.Parallel()
	server := w.cluster.Server
	returned := func(f follower) error {
		ended := make(chan error, 1)
		go func() { ended <- f.wait() }()
		select {
		case err := <-ended:
			return err
		case <-time.After(20 * time.Second):
			return errors.New("Run goes on")
		}
	}
	stopOnFinal := reflector.WithFinalErrors()
	unauthorized := returned(w.followPods(t, server.Config("a wrong token"), "", nil, stopOnFinal))
	require.True(t, apierrors.IsUnauthorized(unauthorized), "%v", unauthorized)
	forbidden := returned(w.followPods(t, server.Config(""), "", nil, stopOnFinal))
	require.True(t, apierrors.IsForbidden(forbidden), "%v", forbidden)
	missing := returned(w.followMissing(t, server.Config(cluster.Agent), stopOnFinal))
	require.True(t, apierrors.IsNotFound(missing), "%v", missing)
}

// sinceAnswer is the time from the first answer with a code to the moment when Status showed its
// class.
func sinceAnswer(t testing.TB, f follower, line *timeline, code int, class reflector.Class) time.Duration {
	t.Helper()
	for _, r := range f.sent().log() {
		if r.code == code {
			m, ok := line.first(class, 0)
			require.True(t, ok)
			took := max(0, line.began.Add(m.at).Sub(r.answered))
			require.Less(t, took, shownWithin)
			return took.Round(time.Millisecond)
		}
	}
	t.Fatalf("no request was answered %d", code)
	return 0
}

// answered is the number of requests with an answer.
func answered(f follower, code int) (n int) {
	for _, r := range f.sent().log() {
		if r.code == code {
			n++
		}
	}
	return n
}

// account creates a service account.
func (w *world) account(t testing.TB, name string) *corev1.ServiceAccount {
	t.Helper()
	account, err := w.client.CoreV1().ServiceAccounts("default").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return account
}

func (w *world) grantAccount(t testing.TB, name string) {
	t.Helper()
	_, err := w.client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reads + "-" + cluster.AgentUser},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func (w *world) withdrawAccount(t testing.TB, name string) {
	t.Helper()
	require.NoError(t, w.client.RbacV1().ClusterRoleBindings().Delete(t.Context(), name, metav1.DeleteOptions{}))
}
