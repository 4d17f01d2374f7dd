package reflector_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// TestStatusIsOfOneEvent: contact, version and count move together, when the store has the event.
func TestStatusIsOfOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		copied := &observed{Indexer: store.NewIndexer[*corev1.Pod]()}
		r := reflector.New[*corev1.Pod](everySecond{}, copied)
		copied.look = r.Status
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second+time.Millisecond)
		defer cancel()
		require.NoError(t, r.Run(ctx))
		seen := append(copied.seen, r.Status())
		require.Len(t, seen, 4)
		for i, s := range seen[1:] {
			at := began.Add(time.Duration(i+1) * time.Second)
			require.Equal(t, at, s.LastContact)
			require.Equal(t, at, s.LastEvent)
			require.Equal(t, at, s.LastProgress)
			require.Equal(t, i+1, s.Events)
			require.Equal(t, fmt.Sprint(i+2), s.ResourceVersion)
		}
	})
}

// observed looks at the status before each update.
type observed struct {
	*store.Indexer[*corev1.Pod]
	look func() reflector.Status
	seen []reflector.Status
}

func (o *observed) Update(obj *corev1.Pod) error {
	o.seen = append(o.seen, o.look())
	return o.Indexer.Update(obj)
}

// everySecond is an empty list at version 1, and a change each second.
type everySecond struct{}

func (everySecond) IsWatchListSemanticsUnSupported() bool { return true }

func (everySecond) List(context.Context, metav1.ListOptions) listwatch.List[*corev1.Pod] {
	return listwatch.List[*corev1.Pod]{
		Items: func(func(*corev1.Pod, error) bool) {},
		Meta:  func() metav1.ListMeta { return metav1.ListMeta{ResourceVersion: "1"} },
	}
}

func (everySecond) Watch(ctx context.Context, _ metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		for version := 2; ; version++ {
			select {
			case <-ctx.Done():
				yield(listwatch.Event[*corev1.Pod]{}, ctx.Err())
				return
			case <-time.After(time.Second):
			}
			obj := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: fmt.Sprint(version)}}
			if !yield(listwatch.Event[*corev1.Pod]{Type: watch.Modified, Object: obj, ResourceVersion: obj.ResourceVersion}, nil) {
				return
			}
		}
	}
}
