package informer_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
)

type widget = *unstructured.Unstructured

type widgets struct {
	*listwatchtest.Collection[widget]
}

func newWidgets(t *testing.T) widgets {
	return widgets{listwatchtest.New(t, listwatchtest.Custom[widget](
		schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, "widgets"))}
}

func (w widgets) create(name string) widget {
	return w.Create(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "ns", "name": name},
	}})
}

// drop does what the API server does when a CRD is deleted: it deletes the objects, ends the
// watches, and answers 404 from then on. The result creates the CRD again.
func (w widgets) drop(objects ...widget) (again func()) {
	for _, obj := range objects {
		w.Remove(obj)
	}
	synctest.Wait() // the watches have delivered the deletions
	gone := apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "")
	list := w.Fail(listwatchtest.List, gone, listwatchtest.UntilLifted())
	watch := w.Fail(listwatchtest.Watch, gone, listwatchtest.UntilLifted())
	w.Disconnect(listwatchtest.On(listwatchtest.Watch))
	return func() {
		list.Lift()
		watch.Lift()
	}
}

// take returns the events since its last call, sorted.
func take(events chan informer.Event[widget]) (lines []string) {
	synctest.Wait()
	for len(events) > 0 {
		e := <-events
		line := e.Type.String() + " " + e.Key
		if e.Missed {
			line += " missed"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// TestCRDRemovedAndCreatedAgain: the deletions at the CRD's end are delivered, Status shows the
// 404, and the informer follows the CRD's return without a restart.
func TestCRDRemovedAndCreatedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWidgets(t)
		a, b := w.create("a"), w.create("b")
		i := informer.New(w.ListerWatcher())
		events := make(chan informer.Event[widget], 100)
		_, err := i.AddHandler(func(e informer.Event[widget]) { events <- e })
		require.NoError(t, err)
		ran := make(chan error, 1)
		go func() { ran <- i.Run(t.Context()) }()
		require.NoError(t, i.WaitSynced(t.Context()))
		require.Equal(t, []string{"added ns/a", "added ns/b"}, take(events))

		again := w.drop(a, b)
		time.Sleep(10 * time.Minute) // simulated time
		require.Equal(t, []string{"deleted ns/a", "deleted ns/b"}, take(events), "as the server told them, with their final state")
		require.Zero(t, i.Snapshot().Len())
		status := i.Status()
		require.Equal(t, reflector.NotFound, status.Class)
		require.True(t, apierrors.IsNotFound(status.Err))
		require.ErrorContains(t, i.Ready(time.Minute), "not found")
		require.Less(t, len(w.Server().Requests()), 10*60, "it is asked for seldom")

		again()
		w.create("a")
		time.Sleep(time.Minute)
		require.Equal(t, []string{"added ns/a missed"}, take(events))
		require.NoError(t, i.Status().Err)
		require.NoError(t, i.Ready(time.Minute))
		w.create("c")
		require.Equal(t, []string{"added ns/c"}, take(events), "it is watched")
	})
}

// TestCRDRemovedUnseen: a 404 proves no deletion, since a starting server answers 404 too. The last
// state stays, marked as stale, until the next list shows the deletions.
func TestCRDRemovedUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWidgets(t)
		a, b := w.create("a"), w.create("b")
		i := informer.New(w.ListerWatcher())
		events := make(chan informer.Event[widget], 100)
		_, err := i.AddHandler(func(e informer.Event[widget]) { events <- e })
		require.NoError(t, err)
		go func() { _ = i.Run(t.Context()) }()
		require.NoError(t, i.WaitSynced(t.Context()))
		require.Len(t, take(events), 2)

		again := w.drop()
		w.Remove(a)
		w.Remove(b)
		time.Sleep(10 * time.Minute)
		require.Empty(t, take(events))
		require.Equal(t, 2, i.Snapshot().Len(), "the last state is kept")
		require.Equal(t, reflector.NotFound, i.Status().Class)
		require.ErrorContains(t, i.Ready(time.Minute), "10m0s ago; allowed are 1m0s (not_found: ")

		w.create("b")
		again()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"added ns/b missed", "deleted ns/a missed", "deleted ns/b missed"}, take(events))
		require.NoError(t, i.Ready(time.Minute))
	})
}
