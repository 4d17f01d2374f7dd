package robustness_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// beside is one collection, read from kube-apiserver and from the etcd below it.
type beside[T store.Object] struct {
	t           *testing.T
	server, own listwatch.ListerWatcher[T]
}

const answered = 30 * time.Second // how long an answer may take

// list reads one list, or page, of a source.
func list[T store.Object](t *testing.T, source listwatch.ListerWatcher[T], options metav1.ListOptions) (objects []T, meta metav1.ListMeta, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answered)
	defer cancel()
	read := source.List(ctx, options)
	for obj, err := range read.Items {
		if err != nil {
			return nil, metav1.ListMeta{}, err
		}
		objects = append(objects, obj)
	}
	return objects, read.Meta(), nil
}

// sameList compares one list of both, whose options name a version, or both read the latest.
func (b beside[T]) sameList(options metav1.ListOptions) metav1.ListMeta {
	b.t.Helper()
	want, wantMeta, err := list(b.t, b.server, options)
	require.NoError(b.t, err)
	got, gotMeta, err := list(b.t, b.own, options)
	require.NoError(b.t, err)
	require.Equal(b.t, want, got, "%+v", options)
	require.Equal(b.t, wantMeta, gotMeta, "%+v", options)
	return gotMeta
}

// samePages reads all pages from a version on, each with the other's token.
func (b beside[T]) samePages(version string) {
	b.t.Helper()
	options := metav1.ListOptions{Limit: 7, ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	for pages := 1; ; pages++ {
		meta := b.sameList(options) // with equal tokens
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
		if options.Continue = meta.Continue; options.Continue == "" {
			require.Greater(b.t, pages, 2)
			return
		}
	}
}

// sameEvents compares the next n events of a watch from a version.
func (b beside[T]) sameEvents(options metav1.ListOptions, n int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), answered)
	defer cancel()
	want, stopWant := iter.Pull2(b.server.Watch(ctx, options))
	defer stopWant()
	got, stopGot := iter.Pull2(b.own.Watch(ctx, options))
	defer stopGot()
	for i := range n {
		wanted, err, ok := want()
		require.NoError(b.t, err)
		require.True(b.t, ok)
		came, err, ok := got()
		require.NoError(b.t, err, "event %d", i)
		require.True(b.t, ok)
		require.Positive(b.t, came.Bytes)
		wanted.Bytes, came.Bytes = 0, 0 // etcd's encoding is another one than the server's
		require.Equal(b.t, wanted, came, "event %d of %+v", i, options)
	}
}

// TestBesideTheAPIServer: what kube-apiserver has written reads the same from etcd as from the
// server: lists at any version, pages with each other's tokens, and watches, event by event.
func TestBesideTheAPIServer(t *testing.T) {
	c := cluster.Start(t)
	config := c.Server.Config(cluster.Admin)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	direct, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Etcd.URL()}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = direct.Close() })
	seed := seedOf(t)
	random := rand.New(rand.NewPCG(seed, 0))
	const steps = 200

	t.Run("pods", func(t *testing.T) {
		pods := client.CoreV1().Pods("default")
		b := beside[*corev1.Pod]{t, listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods"),
			etcd.New[corev1.Pod](direct, "/registry/pods/", etcd.WithAPIVersion("v1"))}
		var versions []string
		write := func(name string) (*corev1.Pod, error) {
			switch random.IntN(4) {
			case 0:
				return nil, pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
			case 1:
				status := fmt.Sprintf(`{"status":{"phase":"Running","podIP":"10.0.%d.1"}}`, random.IntN(250))
				return pods.Patch(t.Context(), name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
			}
			label := fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, random.Uint64())
			return pods.Patch(t.Context(), name, types.MergePatchType, []byte(label), metav1.PatchOptions{})
		}
		for range steps {
			name := fmt.Sprint("pod-", random.IntN(40))
			pod, err := write(name)
			if apierrors.IsNotFound(err) {
				pod, err = pods.Create(t.Context(), besidePod(name), metav1.CreateOptions{})
			}
			require.NoError(t, err)
			if pod != nil && pod.ResourceVersion != "" {
				versions = append(versions, pod.ResourceVersion)
			}
		}
		judgeBeside(t, b, direct, versions, random)
	})

	t.Run("custom resources", func(t *testing.T) {
		dynamics, err := dynamic.NewForConfig(config)
		require.NoError(t, err)
		defineGadgets(t, dynamics)
		gadgets := dynamics.Resource(gadgetResource).Namespace("default")
		rest, err := listwatch.NewRESTClient(config, gadgetResource.GroupVersion())
		require.NoError(t, err)
		b := beside[*unstructured.Unstructured]{t, listwatch.FromClient[unstructured.Unstructured](rest, "gadgets"),
			etcd.New[unstructured.Unstructured](direct, "/registry/e2e.tributary.dev/gadgets/")}
		var versions []string
		for range steps {
			name := fmt.Sprint("gadget-", random.IntN(40))
			var written *unstructured.Unstructured
			if random.IntN(4) == 0 {
				err = gadgets.Delete(t.Context(), name, metav1.DeleteOptions{})
			} else {
				patch := fmt.Sprintf(`{"spec":{"size":%d,"text":"é < %d"}}`, random.IntN(1000), random.Uint64())
				written, err = gadgets.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			}
			if apierrors.IsNotFound(err) {
				written, err = gadgets.Create(t.Context(), gadget(name), metav1.CreateOptions{})
			}
			require.NoError(t, err)
			if written != nil {
				versions = append(versions, written.GetResourceVersion())
			}
		}
		judgeBeside(t, b, direct, versions, random)
	})
}

// judgeBeside compares a collection that has a history of versions. At the end that history is
// compacted.
func judgeBeside[T store.Object](t *testing.T, b beside[T], direct *clientv3.Client, versions []string, random *rand.Rand) {
	t.Helper()
	b.t = t
	require.Greater(t, len(versions), 100)
	first, last := versions[0], versions[len(versions)-1]
	for range 10 {
		exact := metav1.ListOptions{
			ResourceVersion: versions[random.IntN(len(versions))], ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		}
		b.sameList(exact)
	}
	b.samePages(versions[len(versions)/2])
	b.samePages(last)
	b.sameEvents(metav1.ListOptions{ResourceVersion: first}, len(versions)-1)
	b.sameEvents(metav1.ListOptions{ResourceVersion: versions[len(versions)/2]}, len(versions)/4)
	b.sameEvents(metav1.ListOptions{ResourceVersion: first, LabelSelector: "n"}, 1)

	want, _, err := list(t, b.server, metav1.ListOptions{})
	require.NoError(t, err)
	got, _, err := list(t, b.own, metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, want, got)

	newest, err := strconv.ParseInt(last, 10, 64)
	require.NoError(t, err)
	_, err = direct.Compact(t.Context(), newest, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	_, _, err = list(t, b.own, metav1.ListOptions{ResourceVersion: first, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
}

func besidePod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{
			Name: "web", Image: "registry.example/web:1.27", Env: []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}},
		}}},
	}
}

var gadgetResource = schema.GroupVersionResource{Group: "e2e.tributary.dev", Version: "v1", Resource: "gadgets"}

func gadget(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gadgetResource.GroupVersion().String(), "kind": "Gadget",
		"metadata": map[string]any{"name": name, "namespace": "default", "labels": map[string]any{"n": "1"}},
		"spec":     map[string]any{"size": int64(1), "text": "x"},
	}}
}

// defineGadgets creates a custom resource, and returns when the server serves it.
func defineGadgets(t *testing.T, dynamics dynamic.Interface) {
	t.Helper()
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	_, err := dynamics.Resource(crds).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gadgets." + gadgetResource.Group},
		"spec": map[string]any{
			"group": gadgetResource.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
			"versions": []any{map[string]any{
				"name": gadgetResource.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := dynamics.Resource(gadgetResource).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, time.Minute, 20*time.Millisecond)
}
