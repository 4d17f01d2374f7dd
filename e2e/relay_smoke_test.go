package e2e_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/reflector"
)

// TestRelaySmoke is the gate's: clients of a relay keep whole copies of a real API server through
// its restart, by one list and one watch of the relay's; their own rights count, and end their
// watches; and what they write goes through.
func TestRelaySmoke(t *testing.T) { relaySmoke(t) }

// TestRelaySmokeWithoutWatchLists is the same before a server that has none, as by default before
// 1.34. The relay's first request is refused, and it reads pages.
func TestRelaySmokeWithoutWatchLists(t *testing.T) {
	t.Parallel()
	relaySmoke(t, "--feature-gates=WatchList=false")
}

func relaySmoke(t *testing.T, flags ...string) {
	audit := cluster.NewAudit(t)
	c := cluster.Start(t, append(audit.Flags(), flags...)...)
	w := newWorld(t, c)
	c.AllowRelay()
	w.fill(200)
	w.grantAccount(t, "reader")
	reader := c.AccountToken(w.account(t, "reader"), time.Now().Add(time.Hour))
	r := w.relayOfServer(impatient())
	copies := []follower{
		w.followPods(t, r.config(reader), "", nil, reflector.WithWatchTimeout(5*time.Second)),
		w.followPods(t, r.config(reader), nodeName(1), nil, reflector.WithWatchTimeout(5*time.Second)),
	}
	began := time.Now()
	whole := func() {
		w.freshness(t, began, 20*time.Second, await(copies[0], nodeName(1)), await(copies[1], nodeName(1)))
		for _, f := range copies {
			requireWhole(t, f, 5*time.Second)
		}
		t.Logf("whole after %s", time.Since(began).Round(time.Millisecond))
	}
	for _, f := range copies {
		requireSynced(t, f, 10*time.Second)
	}
	whole()
	refused := func(r cluster.AuditedRequest) bool { return r.Code == http.StatusUnprocessableEntity }
	read := slices.DeleteFunc(audit.Collected(cluster.AgentUser, "pods"), refused)
	require.Len(t, read, 1, "one reading of all, for all clients")
	require.Empty(t, audit.Collected("system:serviceaccount:default:reader", "pods"), "what the clients read comes out of the copy")

	// A write goes through, and the next list without a version has it.
	client, err := kubernetes.NewForConfig(r.config(cluster.Admin))
	require.NoError(t, err)
	for i := range 20 {
		_, err := client.CoreV1().Pods("default").Create(t.Context(), newPod(podName(1000+i), nodeName(i)), metav1.CreateOptions{})
		require.NoError(t, err)
		list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + podName(1000+i)})
		require.NoError(t, err)
		require.Len(t, list.Items, 1, "a list that is not the newest")
	}

	began = time.Now()
	c.Server.Kill()
	c.Server.Restart()
	whole()

	nobody, err := kubernetes.NewForConfig(r.config(cluster.Nobody))
	require.NoError(t, err)
	_, err = nobody.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	stranger, err := kubernetes.NewForConfig(r.config("a wrong token"))
	require.NoError(t, err)
	_, err = stranger.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)

	lines := []*timeline{watchStatus(t, copies[0]), watchStatus(t, copies[1])}
	w.withdrawAccount(t, "reader")
	for i, line := range lines {
		untilClass(t, line, reflector.Forbidden, 0, 10*time.Second)
		require.Positive(t, answered(copies[i], http.StatusForbidden))
	}
	began = time.Now()
	w.grantAccount(t, "reader")
	whole()
	for _, f := range copies {
		require.LessOrEqual(t, lists(f), 2, "a client lists again for a 410 alone%s", brief(f.sent().log()))
	}
}
