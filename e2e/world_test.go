package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/store"
)

// The size of the collections at full scale.
const (
	manyPods = 5000
	nodes    = 50
	workers  = 24
)

var (
	widgetVersion  = schema.GroupVersion{Group: "e2e.tributary.dev", Version: "v1"}
	widgetResource = widgetVersion.WithResource("widgets")
	crdResource    = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// world writes to a cluster as its users would.
type world struct {
	t        testing.TB
	cluster  *cluster.Cluster
	client   *kubernetes.Clientset
	dynamics dynamic.Interface
	metadata metadata.Interface
	filled   int // how many pods fill has made
}

func newWorld(t testing.TB, c *cluster.Cluster) *world {
	t.Helper()
	config := c.Server.Config(cluster.Admin)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	dynamics, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	bare, err := metadata.NewForConfig(config)
	require.NoError(t, err)
	w := &world{t: t, cluster: c, client: client, dynamics: dynamics, metadata: bare}
	w.grant(cluster.AgentUser)
	return w
}

func nodeName(i int) string { return fmt.Sprintf("node-%02d", i%nodes) }
func podName(i int) string  { return fmt.Sprintf("pod-%05d", i) }

// fill creates n pods, and says how long it took.
func (w *world) fill(n int) {
	w.t.Helper()
	w.filled = n
	began := time.Now()
	w.each(n, func(ctx context.Context, i int) error {
		_, err := w.client.CoreV1().Pods("default").Create(ctx, newPod(podName(i), nodeName(i)), metav1.CreateOptions{})
		return err
	})
	w.t.Logf("%d pods on %d nodes created in %s", n, nodes, time.Since(began).Round(time.Millisecond))
}

// fillWidgets creates n widgets.
func (w *world) fillWidgets(n int) {
	w.t.Helper()
	w.each(n, func(ctx context.Context, i int) error {
		_, err := w.dynamics.Resource(widgetResource).Namespace("default").Create(ctx, newWidget(podName(i), nodeName(i)), metav1.CreateOptions{})
		return err
	})
}

// each calls do for 0 to n-1, several at a time.
func (w *world) each(n int, do func(ctx context.Context, i int) error) {
	w.t.Helper()
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(w.t.Context(), i); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		require.NoError(w.t, *err)
	}
}

// advance makes the server's version newer than that of any collection that is followed: a server
// that starts after that answers watches from theirs with 410.
func (w *world) advance() {
	w.t.Helper()
	_, err := w.client.CoreV1().ConfigMaps("default").Create(w.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "advance-"},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// annotate changes the i-th pod.
func (w *world) annotate(ctx context.Context, i int) error {
	_, err := w.client.CoreV1().Pods("default").Patch(ctx, podName(i), mergePatch, roundPatch(rand.Int()), metav1.PatchOptions{})
	return err
}

func newPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default",
			Labels:      map[string]string{"app": "web", "tier": "front", "pod-template-hash": "5d9c7b6f8"},
			Annotations: map[string]string{"e2e.tributary.dev/round": "0"},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "web", Image: "registry.example/web:1.27",
			Env:   []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "LISTEN", Value: ":8080"}},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
			}},
		}}},
	}
}

func newWidget(name, node string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": widgetVersion.String(), "kind": "Widget",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec":     map[string]any{"nodeName": node, "size": int64(3)},
	}}
}

// defineWidgets creates the custom resource, and returns when the server serves it.
func (w *world) defineWidgets() {
	w.t.Helper()
	_, err := w.dynamics.Resource(crdResource).Create(w.t.Context(), widgetDefinition(), metav1.CreateOptions{})
	require.NoError(w.t, err)
	require.Eventually(w.t, func() bool {
		_, err := w.dynamics.Resource(widgetResource).List(w.t.Context(), metav1.ListOptions{})
		return err == nil
	}, 30*time.Second, 20*time.Millisecond)
}

func widgetDefinition() *unstructured.Unstructured {
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties}
	}
	text := map[string]any{"type": "string"}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crdResource.GroupVersion().String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets." + widgetVersion.Group},
		"spec": map[string]any{
			"group": widgetVersion.Group, "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": widgetVersion.Version, "served": true, "storage": true,
				"selectableFields": []any{map[string]any{"jsonPath": ".spec.nodeName"}},
				"schema": map[string]any{"openAPIV3Schema": object(map[string]any{
					"spec": object(map[string]any{"nodeName": text, "size": map[string]any{"type": "integer"}, "round": text}),
				})},
			}},
		},
	}}
}

const reads = "reads-all"

// grant lets a user list and watch every resource.
func (w *world) grant(user string) {
	w.t.Helper()
	w.permit(reads+"-"+user, user, rbacv1.PolicyRule{Verbs: []string{"list", "watch"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
}

// permit gives a user a cluster role of this name.
func (w *world) permit(name, user string, rules ...rbacv1.PolicyRule) {
	w.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	_, err := w.client.RbacV1().ClusterRoles().Create(w.t.Context(), role, metav1.CreateOptions{})
	require.NoError(w.t, err)
	_, err = w.client.RbacV1().ClusterRoleBindings().Create(w.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// mark writes a pod that nobody has seen before and returns its key: who holds it is fresh.
func (w *world) mark(ctx context.Context, node string) (key string, err error) {
	name := fmt.Sprintf("marker-%016x", rand.Uint64())
	_, err = w.client.CoreV1().Pods("default").Create(ctx, newPod(name, node), metav1.CreateOptions{})
	return store.Key("default", name), err
}
