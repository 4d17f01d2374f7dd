package clientgo_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer/clientgo"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestFromClientset: options narrow the collection, objects share memory, and a transform owns its
// argument. A namespace does not narrow a type in cluster scope.
func TestFromClientset(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	nodes := listwatchtest.Serve(pods.Server(), listwatchtest.Of[*corev1.Node]())
	nodes.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	for _, namespace := range []string{"ns", "other"} {
		pods.Create(onNode(namespace, "a", "n1"))
		pods.Create(onNode(namespace, "b", "n1"))
	}
	client, err := kubernetes.NewForConfig(pods.Server().Config())
	require.NoError(t, err)
	narrow := []listwatch.Option{listwatch.InNamespace("ns"), listwatch.Labels(labels.Everything())}
	ofPods := clientgo.FromClientset(client, &corev1.Pod{}, 0, narrow...)
	require.NoError(t, ofPods.SetTransform(func(obj any) (any, error) {
		obj.(*corev1.Pod).Spec.NodeName = "changed"
		return obj, nil
	}))
	ofNodes := clientgo.FromClientset(client, &corev1.Node{}, 0, narrow...)
	running(t, ofPods.RunWithContext)
	running(t, ofNodes.RunWithContext)
	synced(t, ofPods)
	synced(t, ofNodes)
	require.ElementsMatch(t, []string{"ns/a", "ns/b"}, ofPods.GetStore().ListKeys())
	require.Equal(t, []string{"n1"}, ofNodes.GetStore().ListKeys())
	for _, obj := range ofPods.GetStore().List() {
		require.Equal(t, "changed", obj.(*corev1.Pod).Spec.NodeName)
	}
	require.True(t, clientgo.HasResource(client, &corev1.Pod{}))
	require.False(t, clientgo.HasResource(client, &metav1.PartialObjectMetadata{}))
	require.False(t, clientgo.HasResource(nil, &corev1.Pod{}))
	require.PanicsWithValue(t, "clientgo: FromClientset: a *kubernetes.Clientset has no resource of *v1.PartialObjectMetadata", func() {
		clientgo.FromClientset(client, &metav1.PartialObjectMetadata{}, 0)
	})
}

// listsOnly is a real clientset for a server that answers no watch list.
type listsOnly struct{ kubernetes.Interface }

func (listsOnly) IsWatchListSemanticsUnSupported() bool { return true }

// TestFromClientsetWithoutWatchLists: a clientset that says so is asked for none, as by client-go's
// informers. Tests of Kubernetes' controllers have such servers.
func TestFromClientsetWithoutWatchLists(t *testing.T) {
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			asked <- "list"
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`))
			return
		}
		asked <- "watch " + r.URL.Query().Get("sendInitialEvents")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	pods := clientgo.FromClientset(listsOnly{client}, &corev1.Pod{}, 0)
	running(t, pods.RunWithContext)
	require.Equal(t, "list", <-asked)
	synced(t, pods)
	require.Equal(t, "watch ", <-asked)
}

// TestANarrowFactory: ours read no more than the factory's own would, with its namespace and its
// tweak. Options narrow further.
func TestANarrowFactory(t *testing.T) {
	tweaked := func(selector string) informers.SharedInformerOption {
		return informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector })
	}
	for name, c := range map[string]struct {
		options []informers.SharedInformerOption
		more    []listwatch.Option
		keys    []string
	}{
		"namespace":          {options: []informers.SharedInformerOption{informers.WithNamespace("ns")}, keys: []string{"ns/a", "ns/b"}},
		"tweak":              {options: []informers.SharedInformerOption{tweaked("app=a")}, keys: []string{"ns/a", "other/a"}},
		"both":               {options: []informers.SharedInformerOption{tweaked("app=a"), informers.WithNamespace("ns")}, keys: []string{"ns/a"}},
		"namespace, options": {options: []informers.SharedInformerOption{informers.WithNamespace("ns")}, more: []listwatch.Option{listwatch.Labels(labels.SelectorFromSet(labels.Set{"app": "b"}))}, keys: []string{"ns/b"}},
		"tweak, options":     {options: []informers.SharedInformerOption{tweaked("app!=b")}, more: []listwatch.Option{listwatch.InNamespace("ns"), clientgo.Tweak(func(o *metav1.ListOptions) { o.LabelSelector = "app" })}, keys: []string{"ns/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(onNode("ns", "a", "n1"), onNode("ns", "b", "n1"), onNode("other", "a", "n1"))
				factory := informers.NewSharedInformerFactoryWithOptions(client, 0, c.options...)
				if len(c.more) == 0 {
					requireKeys(t, factory, c.keys...) // client-go's own
					factory = informers.NewSharedInformerFactoryWithOptions(client, 0, c.options...)
				}
				requireKeys(t, clientgo.Factory(factory, []runtime.Object{&corev1.Pod{}}, c.more...), c.keys...)
			})
		})
	}
	wrapped := struct {
		informers.SharedInformerFactory
	}{informers.NewSharedInformerFactory(fake.NewClientset(), 0)}
	require.PanicsWithValue(t, "clientgo: Factory: the namespace and the tweak of list options of a struct { informers.SharedInformerFactory } cannot be read: "+
		"give the factory as its constructor returns it, or options, such as listwatch.InNamespace", func() {
		clientgo.Factory[informers.SharedInformerFactory](wrapped, []runtime.Object{&corev1.Pod{}})
	})
	clientgo.Factory[informers.SharedInformerFactory](wrapped, []runtime.Object{&corev1.Pod{}}, listwatch.InNamespace("ns"))
}

func requireKeys(t *testing.T, factory informers.SharedInformerFactory, keys ...string) {
	t.Helper()
	pods := factory.Core().V1().Pods().Informer()
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	require.Len(t, factory.WaitForCacheSync(ctx.Done()), 1)
	require.ElementsMatch(t, keys, pods.GetStore().ListKeys())
}

// TestTweak: a tweak narrows the options before it, and is called once.
func TestTweak(t *testing.T) {
	var asked []metav1.ListOptions
	ask := func(optionList ...listwatch.FuncsOption) metav1.ListOptions {
		lw := listwatch.FromFuncs[*corev1.Pod](func(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
			asked = append(asked, o)
			return &corev1.PodList{}, nil
		}, func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, errors.ErrUnsupported }, optionList...)
		for range 2 {
			for _, err := range lw.List(t.Context(), metav1.ListOptions{}).Items {
				require.NoError(t, err)
			}
		}
		require.Equal(t, asked[len(asked)-2], asked[len(asked)-1])
		return asked[len(asked)-1]
	}
	calls := 0
	tweak := clientgo.Tweak(func(o *metav1.ListOptions) {
		calls++
		o.LabelSelector, o.FieldSelector, o.AllowWatchBookmarks = "app=a", "spec.nodeName=n", true
	})
	require.Equal(t, metav1.ListOptions{LabelSelector: "app=a", FieldSelector: "spec.nodeName=n"}, ask(tweak))
	b := listwatch.Labels(labels.SelectorFromSet(labels.Set{"tier": "b"}))
	require.Equal(t, metav1.ListOptions{LabelSelector: "app=a,tier=b", FieldSelector: "spec.nodeName=n"}, ask(b, tweak))
	require.Equal(t, metav1.ListOptions{LabelSelector: "tier=b"}, ask(b, clientgo.Tweak(nil)))
	require.Equal(t, metav1.ListOptions{LabelSelector: "app=a", FieldSelector: "spec.nodeName=n"}, ask(tweak, tweak))
	require.Equal(t, 1, calls)
	require.PanicsWithError(t, `clientgo: Tweak: label selector "a=b=c": found '=', expected: ',' or 'end of string'`, func() {
		clientgo.Tweak(func(o *metav1.ListOptions) { o.LabelSelector = "a=b=c" })
	})
	seconds := int64(5)
	for name, tweak := range map[string]func(*metav1.ListOptions){
		"ResourceVersion": func(o *metav1.ListOptions) { o.ResourceVersion = "0" },
		"Limit":           func(o *metav1.ListOptions) { o.Limit = 500 },
		"TimeoutSeconds":  func(o *metav1.ListOptions) { o.TimeoutSeconds = &seconds },
	} {
		require.PanicsWithError(t, "clientgo: Tweak: "+name+" has no effect here: leave it out; selectors narrow, and an option of listwatch does the rest",
			func() { clientgo.Tweak(tweak) })
	}
}

// TestGeneratedFactory: a generated factory has our informers of the types named, with its own
// transform and interval, and client-go's of the others. Options narrow ours.
func TestGeneratedFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(onNode("ns", "a", "n1"), onNode("other", "b", "n1"), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "s"},
		})
		generated := informers.NewSharedInformerFactoryWithOptions(client, 10*time.Second, informers.WithTransform(func(obj any) (any, error) {
			obj.(metav1.Object).SetLabels(map[string]string{"transformed": "yes"})
			return obj, nil
		}))
		factory := clientgo.Factory(generated, []runtime.Object{&corev1.Pod{}}, listwatch.InNamespace("ns"))
		pods, secrets := factory.Core().V1().Pods(), factory.Core().V1().Secrets()
		told := &transcript{}
		_, err := pods.Informer().AddEventHandler(told)
		require.NoError(t, err)
		_, err = secrets.Informer().AddEventHandler(&transcript{})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		factory.Start(ctx.Done())
		defer factory.Shutdown()
		defer cancel()
		require.Len(t, factory.WaitForCacheSync(ctx.Done()), 2)
		require.Equal(t, []string{"ns/a"}, pods.Informer().GetStore().ListKeys())
		require.Equal(t, []string{"other/s"}, secrets.Informer().GetStore().ListKeys())
		pod, err := pods.Lister().Pods("ns").Get("a")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"transformed": "yes"}, pod.Labels)
		_, ours := clientgo.StatusOf(factory.InformerFor(&corev1.Pod{}, nil))
		require.True(t, ours)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.Len(t, told.take(), 2, "one is a redelivery")
		require.PanicsWithValue(t, "clientgo: Factory: the factory has an informer of *v1.Secret already: call Factory first", func() {
			clientgo.Factory(generated, []runtime.Object{&corev1.Secret{}})
		})
		before := pods.Informer()
		later := clientgo.Factory(generated, []runtime.Object{&corev1.Pod{}, &corev1.Node{}}).Core().V1()
		require.Equal(t, before, later.Pods().Informer(), "a type that was named before: client-go wraps it")
		_, ours = clientgo.StatusOf(later.Nodes().Informer())
		require.True(t, ours)
	})
}
