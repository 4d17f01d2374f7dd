package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
)

// The smoke of the gate: copies of one real API server live through what most often ends a watch.
// The other tests here take minutes, and try each fault in more ways.
func TestSmoke(t *testing.T) {
	c := cluster.Start(t)
	w := newWorld(t, c)
	w.fill(200)
	w.grantAccount(t, "rotated")
	token := filepath.Join(t.TempDir(), "token")
	rotate := func() {
		account := w.account(t, "rotated")
		require.NoError(t, os.WriteFile(token, []byte(c.AccountToken(account, time.Now().Add(time.Hour))), 0o600))
	}
	rotate()
	config := c.Server.Config("")
	// Unlike BearerTokenFile, this reads the file again as soon as the server answers 401.
	config.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedFileTokenSource(token)))
	copies := []follower{
		w.followPods(t, config, "", nil),
		w.followPods(t, config, nodeName(1), []listwatch.Option{listwatch.WithJSON()}),
	}
	var killed time.Time
	kill := func() {
		killed = time.Now()
		c.Server.Kill()
	}
	// whole checks the copies, and that each has listed so often again, for no cause but a 410.
	whole := func(least, most int) (relists int) {
		w.freshness(t, killed, 20*time.Second, await(copies[0], nodeName(1)), await(copies[1], nodeName(1)))
		for _, f := range copies {
			requireWhole(t, f, 5*time.Second)
			require.NoError(t, f.ready(time.Minute))
			again := f.status().Lists[reflector.Expired]
			require.Equal(t, 1+again, lists(f), "%s%s", f.name(), brief(f.sent().log()))
			require.GreaterOrEqual(t, again, least, "%s%s", f.name(), brief(f.sent().log()))
			require.LessOrEqual(t, again, most, "%s%s", f.name(), brief(f.sent().log()))
			relists = max(relists, again)
		}
		return relists
	}
	killed = time.Now()
	for _, f := range copies {
		requireSynced(t, f, 10*time.Second)
	}
	whole(0, 0)
	t.Logf("first sync: %s", time.Since(killed).Round(time.Millisecond))

	kill()
	c.Server.Restart()
	relists := whole(0, 1) // one, if the server has written before its cache of pods began
	t.Logf("kill -9 and restart: whole after %s", time.Since(killed).Round(time.Millisecond))

	w.advance()
	kill()
	c.Etcd.Compact()
	c.Server.Restart()
	relists = whole(1, relists+1)
	t.Logf("410: one list each, whole after %s", time.Since(killed).Round(time.Millisecond))

	// The name's new account has another UID, so that the old token is good no more. The deletion
	// advances the server's version, so that each copy lists once more.
	require.NoError(t, w.client.CoreV1().ServiceAccounts("default").Delete(t.Context(), "rotated", metav1.DeleteOptions{}))
	lines := []*timeline{watchStatus(t, copies[0]), watchStatus(t, copies[1])}
	kill() // a running server goes on to take the token for ten seconds
	c.Server.Restart()
	for _, line := range lines {
		untilClass(t, line, reflector.Unauthorized, 0, 10*time.Second)
	}
	rotate()
	whole(2, relists+1)
	t.Logf("token rotated: shown as %s, whole after %s", reflector.Unauthorized, time.Since(killed).Round(time.Millisecond))
}
