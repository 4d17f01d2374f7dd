package howto_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/examples/howto"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

type object = *unstructured.Unstructured

// run runs a copy until the test ends.
func run(t *testing.T, do func(context.Context) error) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- do(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
}

func restClient(t *testing.T, s *listwatchtest.Server) rest.Interface {
	client, err := listwatch.NewRESTClient(s.Config(), corev1.SchemeGroupVersion)
	require.NoError(t, err)
	return client
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeName:   "node-1",
			Containers: []corev1.Container{{Name: "main", Image: "web"}},
			Volumes:    []corev1.Volume{{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tls"}}}},
		},
	}
}

func serveWidgets(s *listwatchtest.Server) *listwatchtest.Collection[object] {
	return listwatchtest.Serve(s, listwatchtest.Custom[object](schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, "widgets"))
}

func widget(name string) object {
	w := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	w.SetNamespace("default")
	w.SetName(name)
	return w
}

// TestADefinitionThatComesLater: the class is not_found, until the copy syncs by itself.
func TestADefinitionThatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := listwatchtest.NewServer(t)
		widgets, err := howto.Widgets(s.Config())
		require.NoError(t, err)
		run(t, widgets.Run)
		s.AwaitRequests(1)
		synctest.Wait()
		require.Equal(t, reflector.NotFound, widgets.Status().Class)
		serveWidgets(s).Create(widget("a"))
		began := time.Now()
		require.NoError(t, widgets.WaitSynced(t.Context()))
		require.Less(t, time.Since(began), 5*time.Second)
		require.Equal(t, 1, widgets.Snapshot().Len())
	})
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := listwatchtest.NewServer(t)
		kind := listwatchtest.Custom[object](schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "customresourcedefinitions")
		kind.Kind.ClusterScoped = true
		crds := listwatchtest.Serve(s, kind)
		serveWidgets(s).Create(widget("a"))
		set := informer.NewSet(s.Config())
		run(t, set.Run)
		var told []string
		run(t, func(ctx context.Context) error {
			return howto.Follow(ctx, set, func(e informer.Event[object]) { told = append(told, e.Type.String()+" "+e.Key) })
		})
		definition := func(established string) object {
			crd := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
				"metadata": map[string]any{"name": "widgets.example.com"},
				"spec": map[string]any{
					"group": "example.com", "names": map[string]any{"plural": "widgets"},
					"versions": []any{map[string]any{"name": "v1", "served": true}},
				},
				"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": established}}},
			}}
			return crd
		}
		copies := func() (names []string) {
			synctest.Wait()
			for _, c := range set.Status() {
				name, _, _ := strings.Cut(c.Name, ".")
				names = append(names, name)
			}
			slices.Sort(names)
			return names
		}
		crds.Create(definition("False"))
		require.Equal(t, []string{"customresourcedefinitions"}, copies())
		crds.UpdateStatus(definition("True"))
		require.Equal(t, []string{"customresourcedefinitions", "widgets"}, copies())
		require.Equal(t, []string{"added default/a"}, told)
		crds.Delete(definition("True"))
		require.Equal(t, []string{"customresourcedefinitions"}, copies())
	})
}

func TestNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		for _, namespace := range []string{"a", "b", "c"} {
			pods.Create(pod(namespace, "web"))
		}
		union, err := howto.Namespaces(restClient(t, pods.Server()), "a", "b")
		require.NoError(t, err)
		run(t, union.Run)
		require.NoError(t, union.WaitSynced(t.Context()))
		require.ElementsMatch(t, []string{"a/web", "b/web"}, slices.Collect(union.Snapshot().Keys()))
	})
}

func TestParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		var all, held []string
		for i := range 20 {
			all = append(all, store.KeyOf(pods.Create(pod("a", fmt.Sprint("web-", i)))))
		}
		for replica := range 3 {
			part := howto.Part(restClient(t, pods.Server()), replica, 3)
			run(t, part.Run)
			require.NoError(t, part.WaitSynced(t.Context()))
			held = slices.AppendSeq(held, part.Snapshot().Keys())
		}
		require.ElementsMatch(t, all, held)
	})
}

func TestClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan string, 2)
		for _, name := range []string{"east", "west"} {
			pods := listwatchtest.New(t, listwatchtest.Pods())
			pods.Create(pod("a", "web"))
			run(t, func(ctx context.Context) error {
				return howto.Cluster(ctx, name, pods.Server().Config(), func(key string) { told <- key })
			})
		}
		require.ElementsMatch(t, []string{"east/a/web", "west/a/web"}, []string{<-told, <-told})
	})
}

// TestLabel: the copy hears nothing of another writer, so that the first update is a conflict.
func TestLabel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listwatchtest.New(t, listwatchtest.Pods())
		server.Create(pod("a", "web"))
		pods := informer.New(server.ListerWatcher())
		run(t, pods.Run)
		require.NoError(t, pods.WaitSynced(t.Context()))
		core, err := corev1client.NewForConfig(server.Server().Config())
		require.NoError(t, err)

		server.Mute()
		_, err = core.Pods("a").Patch(t.Context(), "web", "application/merge-patch+json", []byte(`{"metadata": {"labels": {"by": "another"}}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.NoError(t, howto.Label(t.Context(), core.Pods("a"), pods, "a", "web"))
		held, err := store.Find(pods, "a", "web")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"app": "web", "by": "another", "tier": "front"}, held.Labels)
		require.Len(t, server.Server().Requests(listwatchtest.Update), 2)
	})
}

// TestMemory: each form holds what its row of the table says.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := listwatchtest.New(t, listwatchtest.Pods())
		server.Create(pod("a", "web"))
		secrets := listwatchtest.Serve(server.Server(), listwatchtest.Of[*corev1.Secret]())
		for _, name := range []string{"tls", "other"} {
			secrets.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}})
		}
		client := restClient(t, server.Server())
		interned, metadata, projected := howto.Interned(client), howto.Metadata(client), howto.Projected(client)
		inBytes := howto.Packed(client)
		referred := howto.Referred(client, interned)
		for _, do := range []func(context.Context) error{interned.Run, metadata.Run, projected.Run, inBytes.Run, referred.Run} {
			run(t, do)
		}
		synctest.Wait()
		whole, _ := interned.Get("a/web")
		require.Equal(t, "web", whole.Spec.Containers[0].Image)
		meta, _ := metadata.Get("a/web")
		require.Equal(t, "web", meta.Labels["app"])
		small, _ := projected.Get("a/web")
		require.Equal(t, "node-1", small.Spec.NodeName)
		require.Empty(t, small.Spec.Containers)
		unpacked, _ := inBytes.Get("a/web")
		require.Equal(t, whole, unpacked)
		secret, err := referred.Get(t.Context(), "a", "tls")
		require.NoError(t, err)
		require.Equal(t, "tls", secret.Name)
		require.Equal(t, 1, referred.Status().Objects)
	})
}
