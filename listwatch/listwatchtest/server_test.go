package listwatchtest_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/server/watchcache"
)

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// Unmodified client-go code, its shared informers included, runs in a bubble and recovers from a
// fault.
func TestClientsetAndInformersInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := listwatchtest.NewServer(t)
		pods, nodes := listwatchtest.Serve(s, listwatchtest.Pods()), listwatchtest.Serve(s, listwatchtest.Of[*corev1.Node]())
		client, err := kubernetes.NewForConfig(s.Config())
		require.NoError(t, err)
		factory := informers.NewSharedInformerFactory(client, 0)
		podLister, nodeLister := factory.Core().V1().Pods().Lister(), factory.Core().V1().Nodes().Lister()
		podInformer, nodeInformer := factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer()
		ctx, cancel := context.WithCancel(t.Context())
		factory.Start(ctx.Done())
		defer func() { cancel(); factory.Shutdown() }()
		require.True(t, cache.WaitForCacheSync(ctx.Done(), podInformer.HasSynced, nodeInformer.HasSynced))

		s.AwaitWatches(2)
		pods.Disconnect()
		s.AwaitWatches(1) // only the nodes' watch is open
		nodes.Create(node("n1"))
		_, err = client.CoreV1().Pods("ns").Create(ctx, pod("a", onNode("n1")), metav1.CreateOptions{})
		require.NoError(t, err)
		s.AwaitWatches(2)
		synctest.Wait()
		a, err := podLister.Pods("ns").Get("a")
		require.NoError(t, err)
		require.Equal(t, "n1", a.Spec.NodeName)
		_, err = nodeLister.Get("n1")
		require.NoError(t, err)
	})
}

func TestThroughToClientGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(pod("a", onNode("n1")))
		pods.Create(pod("b", onNode("n2")))
		lw := listwatch.ToClientGo(pods.ListerWatcher(listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", "n1"))))
		held := cache.NewStore(cache.MetaNamespaceKeyFunc)
		r := cache.NewReflector(lw, &corev1.Pod{}, held, 0)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.RunWithContext(ctx)
		}()
		defer func() { cancel(); <-done }()
		synctest.Wait()
		require.Equal(t, []string{"ns/a"}, held.ListKeys())
		pods.Expire().Wait()
		pods.Remove(pod("a"))
		time.Sleep(time.Minute) // simulated time
		require.Empty(t, held.ListKeys())
	})
}

func TestKubectlReadsTheKubeconfig(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("kubectl is not in PATH")
	}
	pods := listwatchtest.New(t, listwatchtest.Pods())
	pods.Create(pod("a", onNode("n1")))
	get := func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), kubectl, append([]string{"get", "pods", "--no-headers"}, args...)...)
		command.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=" + pods.Server().Kubeconfig()}
		out, err := command.CombinedOutput()
		return string(out), err
	}
	out, err := get("-n", "ns", "--field-selector", "spec.nodeName=n1")
	require.NoError(t, err, out)
	require.Equal(t, []string{"a", "0/1"}, strings.Fields(out)[:2])
	pods.Fail(listwatchtest.List, apierrors.NewForbidden(podResource, "", nil))
	out, err = get("-A")
	require.Error(t, err)
	require.Contains(t, out, "forbidden")
}

func TestDocumentsWithoutAGoType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		widgets := listwatchtest.New(t, listwatchtest.Custom[*unstructured.Unstructured](
			schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, "widgets"))
		w := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(3)}}}
		w.SetNamespace("ns")
		w.SetName("w")
		widgets.Create(w)
		for got, err := range widgets.ListerWatcher().List(t.Context(), latest).Items {
			require.NoError(t, err)
			require.Equal(t, "Widget", got.GetKind())
			require.Equal(t, map[string]any{"size": int64(3)}, got.Object["spec"])
		}
	})
}

func TestRequestsAreLogged(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		client, err := kubernetes.NewForConfig(d.pods.Server().Config())
		require.NoError(t, err)
		inNamespace := client.CoreV1().Pods("ns")
		_, err = inNamespace.Create(t.Context(), pod("a"), metav1.CreateOptions{})
		require.NoError(t, err)
		_, _ = inNamespace.Get(t.Context(), "a", metav1.GetOptions{})
		_, _ = inNamespace.UpdateStatus(t.Context(), pod("a"), metav1.UpdateOptions{})
		_ = inNamespace.Delete(t.Context(), "a", metav1.DeleteOptions{})
		_ = inNamespace.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "k=v"})
		_, _, _ = d.names(t.Context(), metav1.ListOptions{ResourceVersion: "1", Limit: 5, LabelSelector: "a=b"})
		yes := true
		d.follow(t, metav1.ListOptions{SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		require.Len(t, d.pods.Server().AwaitRequests(1, listwatchtest.Watch), 1)

		var lines []string
		for _, r := range d.pods.Server().Requests() {
			require.NotEmpty(t, r.UserAgent)
			require.False(t, r.Time.IsZero())
			lines = append(lines, r.String())
		}
		require.Equal(t, []string{
			"create pods namespace=ns",
			"get pods namespace=ns name=a",
			"update pods/status namespace=ns name=a",
			"delete pods namespace=ns name=a",
			"deletecollection pods namespace=ns labels=k=v",
			"list pods rv=1 labels=a=b limit=5",
			"watch pods match=NotOlderThan initial=true",
		}, lines)
	})
}

func TestWhatIsReadIsTheReaders(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	given := pod("a")
	pods.Create(given)
	given.Spec.NodeName = "spoiled"
	read := func() *corev1.Pod {
		for p, err := range pods.ListerWatcher().List(t.Context(), latest).Items {
			require.NoError(t, err)
			return p
		}
		return nil
	}
	first := read()
	require.Empty(t, first.Spec.NodeName)
	first.Spec.NodeName = "spoiled"
	require.Empty(t, read().Spec.NodeName)
}

func TestBookmarkOnDemandAndByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods(), watchcache.WithBookmarkInterval(10*time.Second))
		d := door{pods, pods.ListerWatcher()}
		a := pods.Create(pod("a"))
		options := after(a)
		options.AllowWatchBookmarks = true
		f := d.follow(t, options)
		pods.Server().AwaitWatches(1)
		began := time.Now()
		pods.Bookmark()
		f.require(t, "BOOKMARK -@2")
		require.Zero(t, time.Since(began))
		f.require(t, "BOOKMARK -@2")
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

func TestWindowIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods(), watchcache.WithWindow(2))
		d := door{pods, pods.ListerWatcher()}
		a := pods.Create(pod("a"))
		for i := range 3 {
			pods.Create(pod(fmt.Sprint("b", i)))
		}
		require.True(t, apierrors.IsResourceExpired(d.follow(t, after(a)).end(t)))
	})
}

// The test leaves everything open. In a bubble, a goroutine that survives the test fails it.
func TestNothingIsLeftRunning(t *testing.T) {
	bothDoors(t, func(t *testing.T, d door) {
		d.pods.Create(pod("a"))
		d.follow(t, latest)
		d.follow(t, latest)
		d.pods.Server().AwaitWatches(2)
		d.pods.Mute(listwatchtest.Times(2))
		muted := d.follow(t, latest)
		d.pods.Server().AwaitRequests(3, listwatchtest.Watch)
		require.Empty(t, muted.ended)
	})
}
