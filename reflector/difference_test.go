package reflector_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// differing lists a@1 and b@2. Its first watch tells events and ends with err; later ones are
// silent.
type differing struct {
	events []listwatch.Event[*corev1.Pod]
	err    error
	lists  int
	from   []string // the versions that watches were resumed from
}

func (s *differing) IsWatchListSemanticsUnSupported() bool { return true }

func (s *differing) List(_ context.Context, o metav1.ListOptions) listwatch.List[*corev1.Pod] {
	if o.Limit != 1 { // a probe
		s.lists++
	}
	return listwatch.List[*corev1.Pod]{
		Meta:  func() metav1.ListMeta { return metav1.ListMeta{ResourceVersion: "3"} },
		Items: store.Items(podAt("a", "1"), podAt("b", "2")),
	}
}

func (s *differing) Watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	s.from = append(s.from, o.ResourceVersion)
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		if len(s.from) == 1 {
			time.Sleep(2 * time.Second) // of the simulated clock: shorter watches have failed
			for _, e := range s.events {
				if !yield(e, nil) {
					return
				}
			}
			if s.err != nil {
				yield(listwatch.Event[*corev1.Pod]{}, s.err)
			}
			return
		}
		<-ctx.Done()
	}
}

// bare is a store without snapshots.
type bare struct{ store.Store[*corev1.Pod] }

// TestADifferenceIsTakenAsAWhole: the store gets it when it has come, and the next watch goes on
// from its end. One that breaks off changes nothing, and neither store nor position move.
func TestADifferenceIsTakenAsAWhole(t *testing.T) {
	whole := []listwatch.Event[*corev1.Pod]{
		{Type: watch.Bookmark, ResourceVersion: "3", DifferenceBegins: true},
		{Type: watch.Added, Object: podAt("b", "14"), ResourceVersion: "14"},
		{Type: watch.Deleted, Object: podAt("a", "18"), ResourceVersion: "18"},
		{Type: watch.Deleted, Object: podAt("never", "18"), ResourceVersion: "18"},
		{Type: watch.Added, Object: podAt("c", "17"), ResourceVersion: "17"},
		{Type: watch.Bookmark, ResourceVersion: "18", DifferenceEnds: true},
	}
	for name, c := range map[string]struct {
		events []listwatch.Event[*corev1.Pod]
		err    error
		plain  bool
		held   map[string]string
		from   string
		lists  int
	}{
		"whole":             {events: whole, held: map[string]string{"b": "14", "c": "17"}, from: "18", lists: 1},
		"ended within":      {events: whole[:5], held: map[string]string{"a": "1", "b": "2"}, from: "3", lists: 1},
		"cut within":        {events: whole[:4], err: errors.New("reset"), held: map[string]string{"a": "1", "b": "2"}, from: "3", lists: 1},
		"without snapshots": {events: whole, plain: true, held: map[string]string{"a": "1", "b": "2"}, from: "3", lists: 2},
		"without beginning": {events: whole[5:], held: map[string]string{"a": "1", "b": "2"}, from: "3", lists: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &differing{events: c.events, err: c.err}
				indexer := store.NewIndexer[*corev1.Pod]()
				into := store.Store[*corev1.Pod](indexer)
				if c.plain {
					into = bare{indexer}
				}
				r := reflector.New(s, into, reflector.WithLogger(logr.Discard()))
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- r.Run(ctx) }()
				time.Sleep(4 * time.Second)
				synctest.Wait()
				held := map[string]string{}
				for key, p := range indexer.Snapshot().All() {
					held[key] = p.ResourceVersion
				}
				require.Equal(t, c.held, held)
				require.Equal(t, c.lists, s.lists)
				require.Equal(t, []string{"3", c.from}, s.from)
				stop()
				require.NoError(t, <-done)
			})
		})
	}
}
