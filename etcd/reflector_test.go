package etcd_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// keep runs a reflector from a source into a store, until the test ends.
func keep(t testing.TB, source listwatch.ListerWatcher[*corev1.Pod], into store.Store[*corev1.Pod]) *reflector.Reflector[*corev1.Pod] {
	t.Helper()
	r := reflector.New(source, into, reflector.WithBackoff(time.Millisecond, 50*time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return r
}

// synced waits until a reflector's store holds a whole state.
func synced(t testing.TB, r *reflector.Reflector[*corev1.Pod]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, r.WaitSynced(ctx), "%v", r.Status())
}

// until polls a condition that other goroutines bring about.
func until(t testing.TB, r *reflector.Reflector[*corev1.Pod], condition func(reflector.Status) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return condition(r.Status()) }, patience, 5*time.Millisecond, "%v", r.Status())
}

func reached(t testing.TB, r *reflector.Reflector[*corev1.Pod], revision int64) {
	t.Helper()
	until(t, r, func(s reflector.Status) bool { return s.ResourceVersion == at(revision) })
}

// requireEqual compares a store's content with what etcd has.
func requireEqual(t testing.TB, client *clientv3.Client, snapshot store.Snapshot[*corev1.Pod]) {
	t.Helper()
	truth, err := client.Get(t.Context(), pods, clientv3.WithPrefix())
	require.NoError(t, err)
	want, got := map[string]string{}, map[string]string{}
	for _, kv := range truth.Kvs {
		want[string(kv.Key[len(pods):])] = at(kv.ModRevision)
	}
	for key, p := range snapshot.All() {
		got[key] = p.ResourceVersion
	}
	require.Equal(t, want, got)
}

// TestCompactionCostsOneRelist: a reader that was away for longer than history is kept lists again,
// and deletions that it missed reach its store.
func TestCompactionCostsOneRelist(t *testing.T) {
	server := start(t)
	gate := &tap{}
	client, writer := connect(t, gate.config(), server), connect(t, clientv3.Config{}, server)
	put(t, writer, pod("stays"))
	put(t, writer, pod("goes"))
	pods := store.NewIndexer[*corev1.Pod]()
	r := keep(t, etcd.New[corev1.Pod](client, "/registry/pods/"), pods)
	synced(t, r)

	gate.hold()
	remove(t, writer, "/registry/pods/ns/goes")
	last := put(t, writer, pod("new"))
	compact(t, writer, last)
	gate.release()
	reached(t, r, last)
	requireEqual(t, writer, pods.Snapshot())
	require.Equal(t, 1, r.Status().Lists[reflector.Expired], "%v", r.Status().Lists)
}

// TestCorruptValueInAStore: the store keeps the last good state of the object and all others,
// Status names the object, and its deletion reaches the store.
func TestCorruptValueInAStore(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	good := put(t, client, pod("a"))
	pods := store.NewIndexer[*corev1.Pod]()
	r := keep(t, etcd.New[corev1.Pod](client, "/registry/pods/"), pods)
	synced(t, r)
	putValue(t, client, "/registry/pods/ns/a", []byte("k8s:enc:aescbc:v1:key-1:x"))
	putValue(t, client, "/registry/pods/ns/never-good", []byte("nothing"))
	other := put(t, client, pod("b"))
	reached(t, r, other)
	require.Equal(t, 2, pods.Snapshot().Len())
	kept, _ := pods.Snapshot().Get("ns/a")
	require.Equal(t, at(good), kept.ResourceVersion)
	status := r.Status()
	require.GreaterOrEqual(t, status.Skipped, 2)
	require.Equal(t, reflector.Undecodable, status.Class)
	require.Regexp(t, `object ns/(a|never-good) cannot be used`, status.Err.Error())

	remove(t, client, "/registry/pods/ns/a")
	last := remove(t, client, "/registry/pods/ns/never-good")
	reached(t, r, last)
	requireEqual(t, client, pods.Snapshot())
}

// TestServerIsAway: an etcd that is not there is unreachable at once, and its return is noticed.
func TestServerIsAway(t *testing.T) {
	t.Parallel()
	server := start(t)
	writer := connect(t, clientv3.Config{}, server)
	put(t, writer, pod("a"))
	// gRPC's own delay grows with the outage; here it is longer than the test from the start.
	client := connect(t, clientv3.Config{DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		Backoff: backoff.Config{BaseDelay: time.Hour, MaxDelay: time.Hour},
	})}}, server)
	pods := store.NewIndexer[*corev1.Pod]()
	r := keep(t, etcd.New[corev1.Pod](client, "/registry/pods/"), pods)
	synced(t, r)
	config := server.Config()
	server.Close()
	until(t, r, func(s reflector.Status) bool { return s.Class == reflector.Unreachable })
	require.Equal(t, 1, pods.Snapshot().Len(), "the content stays")
	again := run(t, &config)
	<-again.Server.ReadyNotify()
	reached(t, r, put(t, writer, pod("b")))
	until(t, r, func(s reflector.Status) bool { return s.Class == reflector.OK })
	require.Len(t, r.Status().Lists, 1, "%v", r.Status().Lists)
}

// cluster starts three members.
func cluster(t testing.TB) (members []*member) {
	t.Helper()
	var peers []url.URL
	initial := ""
	for i := range 3 {
		peers = append(peers, free(t))
		initial += fmt.Sprintf("m%d=%s,", i, peers[i].String())
	}
	for i, peer := range peers {
		config := memberConfig(t, fmt.Sprint("m", i), peer)
		config.InitialCluster = initial[:len(initial)-1]
		members = append(members, run(t, config))
	}
	for _, m := range members {
		<-m.Server.ReadyNotify()
	}
	return members
}

func restarted(t testing.TB, m *member) *member {
	t.Helper()
	config := m.Config()
	again := run(t, &config)
	<-again.Server.ReadyNotify()
	return again
}

// TestLostLeader: a member that has lost its leader cannot tell what happens. The reader says so,
// keeps what it has, and goes on when there is a leader again.
func TestLostLeader(t *testing.T) {
	t.Parallel()
	members := cluster(t)
	writer := connect(t, clientv3.Config{}, members...)
	put(t, writer, pod("a"))
	client := connect(t, clientv3.Config{}, members[0])
	pods := store.NewIndexer[*corev1.Pod]()
	r := keep(t, etcd.New[corev1.Pod](client, "/registry/pods/"), pods)
	synced(t, r)
	members[1].Close()
	members[2].Close()
	until(t, r, func(s reflector.Status) bool { return s.Class == reflector.ServerError })
	require.ErrorContains(t, r.Status().Err, "etcdserver: no leader")
	require.Equal(t, 1, pods.Snapshot().Len())
	for _, m := range members[1:] { // each waits for the other
		config := m.Config()
		run(t, &config)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last int64
	require.Eventually(t, func() bool {
		answer, err := writer.Put(ctx, keyOf(pod("b")), string(podValue(t, pod("b"))))
		if err == nil {
			last = answer.Header.Revision
		}
		return err == nil
	}, patience, 10*time.Millisecond)
	reached(t, r, last)
	requireEqual(t, writer, pods.Snapshot())
	// While watches are refused, lists stand in for them; none was made for a loss.
	require.Equal(t, 1, r.Status().Lists[reflector.OK])
	require.Subset(t, []reflector.Class{reflector.OK, reflector.ServerError}, slices.Collect(maps.Keys(r.Status().Lists)))
}

// TestMembersDieInTurn: a reader of three members goes on with the others when its own dies,
// without a list and without a gap.
func TestMembersDieInTurn(t *testing.T) {
	t.Parallel()
	members := cluster(t)
	client := connect(t, clientv3.Config{}, members...)
	put(t, client, pod("a"))
	pods := store.NewIndexer[*corev1.Pod]()
	r := keep(t, etcd.New[corev1.Pod](client, "/registry/pods/"), pods)
	synced(t, r)
	for i := range members {
		members[i].Server.HardStop()
		members[i].Close()
		bookmarked(t, client)
		var last int64
		for n := range 20 {
			require.Eventually(t, func() bool {
				answer, err := client.Put(t.Context(), keyOf(pod("a")), string(podValue(t, pod("a", labelled("n", fmt.Sprint(i, n))))))
				if err == nil {
					last = answer.Header.Revision
				}
				return err == nil
			}, patience, 10*time.Millisecond)
		}
		reached(t, r, last)
		members[i] = restarted(t, members[i])
	}
	requireEqual(t, client, pods.Snapshot())
	require.Len(t, r.Status().Lists, 1, "%v", r.Status().Lists)
}

// bookmarked requires that a new source with a member less is told progress.
func bookmarked(t testing.TB, client *clientv3.Client) {
	t.Helper()
	options := metav1.ListOptions{AllowWatchBookmarks: true}
	w := watchFrom(t, etcd.New[corev1.Pod](client, "/registry/nothing/", etcd.WithProgressEvery(10*time.Millisecond)), options)
	require.Eventually(t, func() bool {
		if event, err, _ := w.pull(); err == nil {
			return event.Type == watch.Bookmark
		}
		w = watchFrom(t, etcd.New[corev1.Pod](client, "/registry/nothing/", etcd.WithProgressEvery(10*time.Millisecond)), options)
		return false
	}, patience, time.Millisecond)
}

// TestTLSAndUsers: a user reads what it may read, over TLS; a token that the server has forgotten
// is renewed, and a right that is missing is told as such.
func TestTLSAndUsers(t *testing.T) {
	t.Parallel()
	server := start(t, func(c *embed.Config) {
		c.ClientAutoTLS, c.SelfSignedCertValidity = true, 1
		c.ListenClientUrls[0].Scheme, c.AdvertiseClientUrls[0].Scheme = "https", "https"
	})
	certificate, err := os.ReadFile(server.Config().ClientTLSInfo.CertFile)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificate))
	config := clientv3.Config{TLS: &tls.Config{RootCAs: roots}}
	root := connect(t, config, server)
	for user, role := range map[string]string{"root": "root", "reader": "pods"} {
		_, err := root.UserAdd(t.Context(), user, "password-of-"+user)
		require.NoError(t, err)
		_, err = root.RoleAdd(t.Context(), role)
		require.NoError(t, err)
		_, err = root.UserGrantRole(t.Context(), user, role)
		require.NoError(t, err)
	}
	_, err = root.RoleGrantPermission(t.Context(), "pods", "/registry/pods/", clientv3.GetPrefixRangeEnd("/registry/pods/"), clientv3.PermissionType(clientv3.PermRead))
	require.NoError(t, err)
	put(t, root, pod("a"))
	_, err = root.AuthEnable(t.Context())
	require.NoError(t, err)

	config.Username, config.Password = "root", "password-of-root"
	root = connect(t, config, server)
	config.Username, config.Password = "reader", "password-of-reader"
	client := connect(t, config, server)
	pods := store.NewIndexer[*corev1.Pod]()
	r := keep(t, etcd.New[corev1.Pod](client, "/registry/pods/", etcd.WithProgressEvery(10*time.Millisecond)), pods)
	synced(t, r)
	reached(t, r, put(t, root, pod("b")))
	reached(t, r, putValue(t, root, "/registry/leases/ns/a", []byte("{}"))) // by progress

	secrets := keepSecrets(t, client)
	require.Eventually(t, func() bool { return secrets.Status().Class == reflector.Forbidden }, patience, 5*time.Millisecond)
	require.NotContains(t, secrets.Status().Err.Error(), "password")

	saved := server.Config() // its tokens are in memory
	server.Close()
	again := run(t, &saved)
	<-again.Server.ReadyNotify()
	config.Username, config.Password = "root", "password-of-root"
	reached(t, r, put(t, connect(t, config, again), pod("c")))
	requireEqual(t, client, pods.Snapshot())
}

func keepSecrets(t testing.TB, client *clientv3.Client) *reflector.Reflector[*corev1.Secret] {
	t.Helper()
	r := reflector.New(etcd.New[corev1.Secret](client, "/registry/secrets/"), store.NewIndexer[*corev1.Secret](),
		reflector.WithBackoff(time.Millisecond, 50*time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return r
}

var _ listwatch.ListerWatcher[*metav1.PartialObjectMetadata] = (*etcd.Source[*metav1.PartialObjectMetadata])(nil)
