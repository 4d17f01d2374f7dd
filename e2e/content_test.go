package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
	w.redefineWidgets(widgets)

	w.advance()
	c.Server.Kill()
	c.Etcd.Compact() // no watch can be resumed, if the server has not ended it by itself
	c.Server.Restart()
	require.Eventually(t, func() bool {
		for _, u := range ours.Snapshot().All() {
			if !redefined(u) {
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
			return ok && err == nil && redefined(other.(*unstructured.Unstructured))
		}, time.Minute, 50*time.Millisecond)
		other, _, _ := theirs.GetStore().GetByKey(key)
		require.Equal(t, other.(*unstructured.Unstructured).Object, u.Object)
	}
	drift, err := ours.Verify(ctx)
	require.NoError(t, err)
	require.Zero(t, drift.Count)
}

// redefineWidgets gives widgets a default and drops a field, and waits until the server answers so.
func (w *world) redefineWidgets(n int) {
	w.t.Helper()
	ctx := w.t.Context()
	definition, err := w.dynamics.Resource(crdResource).Get(ctx, "widgets."+widgetVersion.Group, metav1.GetOptions{})
	require.NoError(w.t, err)
	version := definition.Object["spec"].(map[string]any)["versions"].([]any)[0]
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties"}
	unstructured.RemoveNestedField(version.(map[string]any), append(path, "round")...)
	require.NoError(w.t, unstructured.SetNestedMap(version.(map[string]any),
		map[string]any{"type": "string", "default": "red"}, append(path, "color")...))
	_, err = w.dynamics.Resource(crdResource).Update(ctx, definition, metav1.UpdateOptions{})
	require.NoError(w.t, err)
	require.Eventually(w.t, func() bool {
		list, err := w.dynamics.Resource(widgetResource).List(ctx, metav1.ListOptions{})
		return err == nil && len(list.Items) == n && redefined(&list.Items[0])
	}, 30*time.Second, 50*time.Millisecond)
}

// redefined reports whether a widget is as redefineWidgets has it.
func redefined(u *unstructured.Unstructured) bool {
	color, _, _ := unstructured.NestedString(u.Object, "spec", "color")
	_, round, _ := unstructured.NestedString(u.Object, "spec", "round")
	return color == "red" && !round
}

// The server answers other content under equal versions, and a verification finds it: the copy says
// that it drifts, and a list replaces it, with nothing else done.
func TestVerifiedDriftIsHealed(t *testing.T) {
	t.Parallel()
	onServers(t, verifiedDriftIsHealed)
}

func verifiedDriftIsHealed(t *testing.T, on server) {
	t.Parallel()
	const widgets = 20
	w := newWorld(t, on.start(t))
	w.defineWidgets()
	w.fillWidgets(widgets)
	client, err := listwatch.NewRESTClient(w.cluster.Server.Config(cluster.Agent), widgetVersion)
	require.NoError(t, err)
	copied := runInformer(t, informer.New(listwatch.FromClient[unstructured.Unstructured](client, "widgets"),
		informer.WithReflector(reflector.WithLiveness(time.Hour), reflector.WithProof(time.Hour)))) // no probe finds it first
	var retold atomic.Int32
	_, err = copied.AddHandler(func(e informer.Event[*unstructured.Unstructured]) {
		if e.Type == informer.Updated && e.Old.GetResourceVersion() == e.New.GetResourceVersion() {
			retold.Add(1)
		}
	})
	require.NoError(t, err)
	w.redefineWidgets(widgets)
	require.NoError(t, copied.Ready(time.Hour))

	verified := make(chan informer.Drift, 1)
	go func() {
		d, err := copied.Verify(t.Context())
		assert.NoError(t, err)
		verified <- d
	}()
	var drift informer.Drift
	for round := 0; drift.At.IsZero(); round++ { // an event moves the copy up to the version of the verification
		patch := fmt.Appendf(nil, `{"spec":{"size":%d}}`, round)
		_, err := w.dynamics.Resource(widgetResource).Namespace("default").Patch(t.Context(), podName(0), mergePatch, patch, metav1.PatchOptions{})
		require.NoError(t, err)
		select {
		case drift = <-verified:
		case <-time.After(50 * time.Millisecond):
		}
	}
	require.GreaterOrEqual(t, drift.Count, widgets-1, "%+v", drift) // all but the one that is written
	found := time.Now()
	require.Eventually(t, func() bool { return copied.Status().Lists[reflector.Drift] == 1 && copied.Ready(time.Hour) == nil }, 20*time.Second, 5*time.Millisecond, "%s", copied.Status())
	for key, u := range copied.Snapshot().All() {
		require.True(t, redefined(u), key)
	}
	require.Eventually(t, func() bool { return retold.Load() >= widgets-1 }, 5*time.Second, 5*time.Millisecond)
	t.Logf("%d of %d differ, such as %+v; a list has healed them %s after the verification", drift.Count, drift.Objects, drift.Differences[0],
		time.Since(found).Round(time.Millisecond))
	require.True(t, copied.Status().Drift.Healed)
}

// wrongWidget is a reader's type that does not agree with the server's: size is a number there.
type wrongWidget struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Size string `json:"size"`
	} `json:"spec"`
}

func (w *wrongWidget) DeepCopyObject() runtime.Object {
	out := &wrongWidget{TypeMeta: w.TypeMeta, Spec: w.Spec}
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
	copied := runInformer(t, informer.New(listwatch.FromClient[wrongWidget](client, "widgets")))
	s := copied.Status()
	require.Zero(t, s.Objects)
	require.Equal(t, reflector.Undecodable, s.Verdict(time.Hour).Class)
	require.ErrorContains(t, copied.Ready(time.Hour), "50 objects cannot be used, of 50")
	answer := httptest.NewRecorder()
	reflector.ReadyHandler(time.Hour, copied).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	require.Equal(t, http.StatusServiceUnavailable, answer.Code)
	t.Logf("%s", answer.Body)
}
