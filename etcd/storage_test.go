package etcd_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/etcd/origin"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// serve runs a server on a collection in etcd, and returns a client of it.
func serve(t testing.TB, client *clientv3.Client, prefix etcd.Prefix) (*origin.Collection[*corev1.Pod], *kubernetes.Clientset) {
	t.Helper()
	c, err := origin.New(etcd.New[corev1.Pod](client, prefix), builtin.Pods().Kind, builtin.Pods().Rules, watchcache.WithBookmarkInterval(time.Hour))
	require.NoError(t, err)
	return serveCollection(t, c)
}

func serveCollection[T store.Object](t testing.TB, c *origin.Collection[T]) (*origin.Collection[T], *kubernetes.Clientset) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	within, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	require.NoError(t, c.WaitSynced(within))

	server, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.ServeCollection(server, c.Collection, apiserver.View[T]{})
	listener := httptest.NewServer(server)
	pods, err := kubernetes.NewForConfig(&rest.Config{Host: listener.URL, QPS: -1})
	require.NoError(t, err)
	t.Cleanup(func() {
		server.Close()
		listener.CloseClientConnections()
		listener.Close()
		pods.CoreV1().RESTClient().(*rest.RESTClient).Client.CloseIdleConnections()
	})
	return c, pods
}

// TestDurableCollectionConforms: written by the collection's rules, kept in etcd, read over HTTP:
// what clients rely on is the same as on a real API server.
func TestDurableCollectionConforms(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	var rows atomic.Int64
	listwatchtest.Conform(t, func(t *testing.T) listwatchtest.Rig {
		c, server := serve(t, client, etcd.Prefix(fmt.Sprintf("/registry/pods-%d/", rows.Add(1))))
		return listwatchtest.Rig{
			Source: func(options ...listwatch.Option) listwatch.ListerWatcher[*corev1.Pod] {
				return listwatch.FromClient[corev1.Pod](server.CoreV1().RESTClient(), "pods", options...)
			},
			Namespace:    "ns",
			Create:       func(_ context.Context, p *corev1.Pod) (*corev1.Pod, error) { return c.Create(p) },
			Update:       func(_ context.Context, p *corev1.Pod) (*corev1.Pod, error) { return c.Update(p) },
			UpdateStatus: func(_ context.Context, p *corev1.Pod) (*corev1.Pod, error) { return c.UpdateStatus(p) },
			Delete: func(_ context.Context, name string) error {
				_, err := c.Delete("ns", name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
				return err
			},
			Expire: func() {
				compact(t, client, put(t, client, pod("elsewhere")))
				require.NoError(t, c.WaitFresh(t.Context()))
				c.Compact()
			},
			Bookmark: c.SendBookmarks,
		}
	})
}

// TestReadsAreConsistent: a read without a version shows every write that has returned, made by
// whatever server on the same etcd.
func TestReadsAreConsistent(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	_, one := serve(t, client, pods)
	_, two := serve(t, client, pods)
	for i := range 50 {
		name := fmt.Sprint("pod-", i)
		created, err := one.CoreV1().Pods("ns").Create(t.Context(), pod(name), metav1.CreateOptions{})
		require.NoError(t, err)
		got, err := two.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, created, got)
		patched, err := two.CoreV1().Pods("ns").Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		list, err := one.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		require.NoError(t, err)
		require.Equal(t, patched.ResourceVersion, list.Items[0].ResourceVersion)
	}
	// Writes elsewhere move the version on, and no event of the collection says so.
	elsewhere := putValue(t, client, "/registry/leases/ns/a", []byte("{}"))
	once := listwatch.FromClient[corev1.Pod](one.CoreV1().RESTClient(), "pods") // client-go would ask again
	_, meta := read(t, once.List(t.Context(), metav1.ListOptions{}))
	version, err := strconv.ParseInt(meta.ResourceVersion, 10, 64)
	require.NoError(t, err)
	require.GreaterOrEqual(t, version, elsewhere)
}

// TestNoUpdateIsLost: two servers that write the same object at once refuse what was decided on an
// older state, and lose nothing that they have taken.
func TestNoUpdateIsLost(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	one, _ := serve(t, client, pods)
	two, _ := serve(t, client, pods)
	_, err := one.Create(pod("a", labelled("n", "0")))
	require.NoError(t, err)
	var taken, refused atomic.Int64
	var writing sync.WaitGroup
	for i := range 4 {
		writing.Go(func() {
			c := []*origin.Collection[*corev1.Pod]{one, two}[i%2]
			for range 25 {
				stored, err := c.Get("ns", "a")
				if err != nil {
					t.Error(err)
					return
				}
				next := stored.DeepCopy()
				n, _ := strconv.Atoi(next.Labels["n"])
				next.Labels["n"] = fmt.Sprint(n + 1)
				switch _, err := c.Update(next); {
				case err == nil:
					taken.Add(1)
				case apierrors.IsConflict(err):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	stored, err := two.Get("ns", "a")
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(taken.Load()), stored.Labels["n"])
	require.EqualValues(t, 100, taken.Load()+refused.Load())
}

// TestPatchesWithoutAVersionNeverConflict: 8 writers make 10 patches each of one object through
// two servers. A patch that names no version is made on the newest state, exactly once.
func TestPatchesWithoutAVersionNeverConflict(t *testing.T) {
	const writers, rounds = 8, 5
	client := connect(t, clientv3.Config{}, start(t))
	one, _ := serve(t, client, pods)
	two, _ := serve(t, client, pods)
	for i, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType} {
		name := fmt.Sprint("pod-", i)
		created, err := one.With(collection.WriteOptions{}).Create(pod(name))
		require.NoError(t, err)
		errs := make(chan error, writers*rounds)
		var writing sync.WaitGroup
		for w := range writers {
			writing.Go(func() {
				c := []*origin.Collection[*corev1.Pod]{one, two}[w%2].With(collection.WriteOptions{Manager: fmt.Sprint("writer-", w)})
				for round := range rounds {
					patch := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"annotations":{"writer-%d":"%d"}}}`, name, w, round)
					if kind == types.ApplyYAMLPatchType {
						_, _, err := c.Apply("ns", name, patch, false)
						errs <- err
						continue
					}
					_, err := c.Patch("ns", name, kind, patch, "")
					errs <- err
				}
			})
		}
		writing.Wait()
		for range writers * rounds {
			require.NoError(t, <-errs, kind)
		}
		patched, err := two.Get("ns", name)
		require.NoError(t, err)
		require.Len(t, patched.Annotations, writers)
		for writer, last := range patched.Annotations {
			require.Equal(t, fmt.Sprint(rounds-1), last, writer)
		}
		first, err := strconv.Atoi(created.ResourceVersion)
		require.NoError(t, err)
		last, err := strconv.Atoi(patched.ResourceVersion)
		require.NoError(t, err)
		require.Equal(t, writers*rounds, last-first, "etcd counts one revision for each write")
	}
}

// TestCollectionOutlivesItsServer: what was written is there for the next server, in the form in
// which kube-apiserver stores it.
func TestCollectionOutlivesItsServer(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	first, err := origin.New(etcd.New[corev1.Pod](client, pods), builtin.Pods().Kind, builtin.Pods().Rules)
	require.NoError(t, err)
	created, err := first.Create(pod("a", labelled("app", "web")))
	require.NoError(t, err)
	changed := created.DeepCopy()
	changed.Labels["app"] = "db"
	created, err = first.Update(changed)
	require.NoError(t, err)
	answer, err := client.Get(t.Context(), pods+"ns/a")
	require.NoError(t, err)
	require.Equal(t, podValue(t, withKind(created)), answer.Kvs[0].Value)

	_, next := serve(t, client, pods)
	got, err := next.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, created, got)

	_, err = origin.New(etcd.New[corev1.Pod](client, pods, etcd.InNamespace("ns")), builtin.Pods().Kind, builtin.Pods().Rules)
	require.ErrorContains(t, err, "leave out InNamespace")
	gadgets, err := origin.New(etcd.New[unstructured.Unstructured](client, widgets), watchcache.Kind[*unstructured.Unstructured]{
		Group: "example.com", Version: "v1", Plural: "widgets", Kind: "Widget",
	}, collection.Rules[*unstructured.Unstructured]{})
	require.NoError(t, err)
	_, err = gadgets.Create(widget("a"))
	require.NoError(t, err)
	answer, err = client.Get(t.Context(), widgets+"ns/a")
	require.NoError(t, err)
	require.Contains(t, string(answer.Kvs[0].Value), `"kind":"Widget"`)
	require.NotContains(t, string(answer.Kvs[0].Value), "resourceVersion")
}

func withKind(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.APIVersion, p.Kind = "v1", "Pod" // no part of the message
	return p
}

// anything is an object of any kind.
type anything interface {
	runtime.Object
	metav1.Object
}

// TestOneGoTypeForManyKinds: a collection of an interface is stored, watched, served and patched as
// one of the Go type that is chosen at run time.
func TestOneGoTypeForManyKinds(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	empty := func() anything { return &corev1.Pod{} }
	many, err := origin.New(etcd.NewFor(client, pods, empty), watchcache.Kind[anything]{
		Version: "v1", Plural: "pods", Kind: "Pod", New: empty,
	}, collection.Rules[anything]{BuiltIn: true, UnconditionalUpdate: true, Generation: collection.CountSpec})
	require.NoError(t, err)
	_, server := serveCollection(t, many)
	_, typed := serve(t, client, pods)
	created, err := server.CoreV1().Pods("ns").Create(t.Context(), pod("a"), metav1.CreateOptions{})
	require.NoError(t, err)
	patch := []byte(`{"spec":{"containers":[{"name":"c","image":"newer"},{"name":"d","image":"other"}]}}`)
	patched, err := server.CoreV1().Pods("ns").Patch(t.Context(), "a", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	require.Len(t, patched.Spec.Containers, 2)
	for _, reader := range []*kubernetes.Clientset{server, typed} {
		watch := watchFrom(t, listwatch.FromClient[corev1.Pod](reader.CoreV1().RESTClient(), "pods"), metav1.ListOptions{ResourceVersion: created.ResourceVersion})
		require.Equal(t, patched, watch.next().Object)
		got, err := reader.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, patched, got)
	}
}
