package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
)

// C1: a custom resource gets a default and drops a field. The server answers other content from
// then on, under the same versions, and no event tells. The next relist brings it, as it does to
// client-go's informer, and handlers are told.
func TestContentThatChangesUnderItsVersion(t *testing.T) {
	onServers(t, contentThatChangesUnderItsVersion)
}

func contentThatChangesUnderItsVersion(t *testing.T, on server) {
	t.Parallel() // the two servers beside each other
	const widgets = 20
	c := on.start(t)
	w := newWorld(t, c)
	w.defineWidgets()
	for i := range widgets {
		widget := newWidget(fmt.Sprintf("widget-%02d", i), nodeName(i))
		require.NoError(t, unstructured.SetNestedField(widget.Object, "dropped later", "spec", "round"))
		_, err := w.dynamics.Resource(widgetResource).Namespace("default").Create(t.Context(), widget, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	config := c.Server.Config(cluster.Agent)
	client, err := listwatch.NewRESTClient(config, widgetVersion)
	require.NoError(t, err)
	ours := informer.New(listwatch.FromClient[unstructured.Unstructured](client, "widgets"))
	var retold atomic.Int32
	_, err = ours.AddHandler(func(e informer.Event[*unstructured.Unstructured]) {
		if e.Type == informer.Updated && e.Old.GetResourceVersion() == e.New.GetResourceVersion() {
			retold.Add(1)
		}
	})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- ours.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	require.NoError(t, ours.WaitSynced(ctx))

	dynamics, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(dynamics, 0)
	theirs := factory.ForResource(widgetResource).Informer()
	factory.Start(ctx.Done())
	t.Cleanup(factory.Shutdown)
	t.Cleanup(cancel)
	factory.WaitForCacheSync(ctx.Done())

	before := ours.Snapshot()
	definition, err := w.dynamics.Resource(crdResource).Get(ctx, "widgets."+widgetVersion.Group, metav1.GetOptions{})
	require.NoError(t, err)
	version := definition.Object["spec"].(map[string]any)["versions"].([]any)[0]
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties"}
	unstructured.RemoveNestedField(version.(map[string]any), append(path, "round")...)
	require.NoError(t, unstructured.SetNestedMap(version.(map[string]any),
		map[string]any{"type": "string", "default": "red"}, append(path, "color")...))
	_, err = w.dynamics.Resource(crdResource).Update(ctx, definition, metav1.UpdateOptions{})
	require.NoError(t, err)
	changed := func(u *unstructured.Unstructured) bool {
		color, _, _ := unstructured.NestedString(u.Object, "spec", "color")
		_, round, _ := unstructured.NestedString(u.Object, "spec", "round")
		return color == "red" && !round
	}
	require.Eventually(t, func() bool {
		list, err := w.dynamics.Resource(widgetResource).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == widgets && changed(&list.Items[0])
	}, 30*time.Second, 50*time.Millisecond)

	w.advance()
	c.Server.Kill()
	c.Etcd.Compact() // no watch can be resumed, if the server has not ended it by itself
	c.Server.Restart()
	require.Eventually(t, func() bool {
		for _, u := range ours.Snapshot().All() {
			if !changed(u) {
				return false
			}
		}
		return retold.Load() == widgets
	}, time.Minute, 50*time.Millisecond)
	for key, u := range ours.Snapshot().All() {
		was, _ := before.Get(key)
		require.Equal(t, was.GetResourceVersion(), u.GetResourceVersion())
		require.Eventually(t, func() bool {
			other, ok, err := theirs.GetStore().GetByKey(key)
			return ok && err == nil && changed(other.(*unstructured.Unstructured))
		}, time.Minute, 50*time.Millisecond)
		other, _, _ := theirs.GetStore().GetByKey(key)
		require.Equal(t, other.(*unstructured.Unstructured).Object, u.Object)
	}
	drift, err := ours.Verify(ctx)
	require.NoError(t, err)
	require.Zero(t, drift.Count)
}

// Widget is a type of a reader that does not agree with the server: size is a number there.
type Widget struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Size string `json:"size"`
	} `json:"spec"`
}

func (w *Widget) DeepCopyObject() runtime.Object {
	out := &Widget{TypeMeta: w.TypeMeta, Spec: w.Spec}
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// Nothing of a collection can be decoded: the copy is empty, and is not right.
func TestUndecodableCollectionIsNotRight(t *testing.T) {
	t.Parallel()
	onServers(t, undecodableCollectionIsNotRight)
}

func undecodableCollectionIsNotRight(t *testing.T, on server) {
	t.Parallel()
	const widgets = 50
	w := newWorld(t, on.start(t))
	w.defineWidgets()
	w.fillWidgets(widgets)
	client, err := listwatch.NewRESTClient(w.cluster.Server.Config(cluster.Agent), widgetVersion)
	require.NoError(t, err)
	copied := runInformer(t, informer.New(listwatch.FromClient[Widget](client, "widgets")))
	s := copied.Status()
	require.Zero(t, s.Objects)
	require.Equal(t, reflector.Undecodable, s.Verdict(time.Hour).Class)
	require.ErrorContains(t, copied.Ready(time.Hour), "50 objects cannot be used, of 50")
	answer := httptest.NewRecorder()
	reflector.ReadyHandler(time.Hour, copied).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	t.Logf("%s", answer.Body)
}
