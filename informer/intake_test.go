package informer

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// watchedJournal counts the objects that come, and those of them that come decoded.
type watchedJournal struct {
	*journal
	came, decoded int
}

func (w *watchedJournal) note(obj store.Entry) store.Entry {
	w.came++
	if e, ok := obj.(*store.Encoded); !ok || e.Decoded != nil || e.Data == nil {
		w.decoded++
	}
	return obj
}

func (w *watchedJournal) put(obj store.Entry, missed bool) error {
	return w.journal.put(w.note(obj), missed)
}
func (w *watchedJournal) delete(obj store.Entry) error { return w.journal.delete(w.note(obj)) }

func (w *watchedJournal) replace(items iter.Seq2[store.Entry, error], resourceVersion func() string) error {
	return w.journal.replace(func(yield func(store.Entry, error) bool) {
		for obj, err := range items {
			if !yield(w.note(obj), err) {
				return
			}
		}
	}, resourceVersion)
}

// TestBytesComeUndecoded: a store of bytes gets those of a list, of changes and of a deletion's
// final state, without an object. Another store gets objects.
func TestBytesComeUndecoded(t *testing.T) {
	for form, options := range map[string][]Option{"objects": {WithStore(store.NewIndexer[*corev1.Pod])}, "bytes": {WithStore(packed.New[corev1.Pod])}} {
		t.Run(form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := listwatchtest.New(t, listwatchtest.Pods())
				named := func(name string) *corev1.Pod {
					return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
				}
				server.Create(named("a"))
				i := newShared[*corev1.Pod](options)
				w := &watchedJournal{journal: i.newJournal()}
				r := i.follow(server.ListerWatcher(listwatch.WithMutationDetector(nil)), i.objects, w, nil)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- r.Run(ctx) }()
				require.NoError(t, r.WaitSynced(ctx))
				server.Create(named("b"))
				server.Remove(named("a"))
				synctest.Wait()
				stop()
				require.NoError(t, <-ended)
				require.Equal(t, 3, w.came)
				if form == "bytes" {
					require.Zero(t, w.decoded)
				} else {
					require.Equal(t, w.came, w.decoded)
				}
				require.Equal(t, 1, i.Snapshot().Len())
			})
		})
	}
}
