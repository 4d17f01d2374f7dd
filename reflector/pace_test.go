package reflector_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// allSent ends the initial events of a watch list.
var allSent = listwatch.Event[*corev1.Pod]{Type: watch.Bookmark, ResourceVersion: "9", InitialEventsEnd: true}

// roles is a server that refuses everything until granted; then it has a pod.
type roles struct {
	granted  time.Time
	requests []time.Time
}

func (g *roles) refused() error {
	g.requests = append(g.requests, time.Now())
	if time.Now().Before(g.granted) {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no role"))
	}
	return nil
}

func (g *roles) List(context.Context, metav1.ListOptions) listwatch.List[*corev1.Pod] {
	return listwatch.List[*corev1.Pod]{
		Meta: func() metav1.ListMeta { return metav1.ListMeta{ResourceVersion: "9"} },
		Items: func(yield func(*corev1.Pod, error) bool) {
			if err := g.refused(); err != nil {
				yield(nil, err)
				return
			}
			yield(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "1"}}, nil)
		},
	}
}

func (g *roles) Watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		if err := g.refused(); err != nil {
			yield(listwatch.Event[*corev1.Pod]{}, err)
			return
		}
		if o.SendInitialEvents != nil && !yield(allSent, nil) {
			return
		}
		<-ctx.Done()
	}
}

// Rights that are granted at any moment are used within 5 s, and asked for no more often than that
// needs.
func TestRefusedRightsAreAskedForAtAnEvenPace(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			g := &roles{granted: began.Add(30*time.Second + time.Duration(rand.Int64N(int64(10*time.Minute))))}
			ctx, cancel := context.WithCancel(t.Context())
			r := reflector.New[*corev1.Pod](g, store.NewIndexer[*corev1.Pod]())
			ended := make(chan error)
			go func() { ended <- r.Run(ctx) }()
			require.NoError(t, r.WaitSynced(ctx))
			require.LessOrEqual(t, time.Since(g.granted), 5*time.Second)
			cancel()
			require.NoError(t, <-ended)
			first := slices.IndexFunc(g.requests, func(at time.Time) bool { return at.Sub(began) > 30*time.Second })
			require.LessOrEqual(t, first, 10, "requests in the first 30 s")
		})
	}
}

// lines is a server whose watches can be cut all at once.
type lines struct {
	cut chan struct{}

	mu      sync.Mutex
	resumed []time.Time
}

func (l *lines) List(context.Context, metav1.ListOptions) listwatch.List[*corev1.Pod] {
	panic("a watch list is answered")
}

func (l *lines) Watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		if o.SendInitialEvents == nil {
			l.mu.Lock()
			l.resumed = append(l.resumed, time.Now())
			l.mu.Unlock()
			<-ctx.Done()
			return
		}
		if !yield(allSent, nil) {
			return
		}
		select {
		case <-l.cut:
			yield(listwatch.Event[*corev1.Pod]{}, io.ErrUnexpectedEOF)
		case <-ctx.Done():
		}
	}
}

// 500 clients lose their connections together: all are back within 100 ms, and no millisecond has
// many of them.
func TestCutConnectionsAreResumedAtOnce(t *testing.T) {
	const clients = 500
	for _, age := range []time.Duration{time.Millisecond, 30 * time.Second} {
		t.Run(age.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				l := &lines{cut: make(chan struct{})}
				var running sync.WaitGroup
				for range clients {
					r := reflector.New[*corev1.Pod](l, store.NewIndexer[*corev1.Pod]())
					running.Go(func() { _ = r.Run(ctx) })
				}
				time.Sleep(age) // of the simulated clock
				at := time.Now()
				close(l.cut)
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				l.mu.Lock()
				require.Len(t, l.resumed, clients)
				slots := map[string]int{}
				for _, back := range l.resumed {
					slots[strconv.Itoa(int(back.Sub(at)/time.Millisecond))]++
				}
				l.mu.Unlock()
				for slot, n := range slots {
					require.Less(t, n, 40, "in millisecond %s", slot)
				}
				cancel()
				running.Wait()
			})
		})
	}
}
