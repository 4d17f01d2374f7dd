package reflector_test

import (
	"context"
	"fmt"
	"iter"
	"strconv"
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

// paging is a source whose page n has so many objects, and the token that token(n) is; n counts
// requests, from 1.
type paging struct {
	forever
	requests int
	token    func(n int) string
	items    int
}

func (p *paging) List(_ context.Context, _ metav1.ListOptions) listwatch.List[*corev1.Pod] {
	p.requests++
	n := p.requests
	return listwatch.List[*corev1.Pod]{
		Meta: func() metav1.ListMeta { return metav1.ListMeta{ResourceVersion: "9", Continue: p.token(n)} },
		Items: func(yield func(*corev1.Pod, error) bool) {
			for i := range p.items {
				if !yield(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(n, "-", i), ResourceVersion: "1"}}, nil) {
					return
				}
			}
		},
	}
}

func (p *paging) Watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return p.forever.Watch(ctx, o)
}

// TestPagesEnd: each endless list is broken off within its bound, and said; a long one that ends is
// not.
func TestPagesEnd(t *testing.T) {
	for name, row := range map[string]struct {
		token    func(n int) string
		items    int
		requests int // at most, until it is broken off; 0: it ends by itself
		says     string
	}{
		"the same token":      {func(int) string { return "again" }, 2, 2, "the continue token of page 1 came again after page 2"},
		"a cycle of 10":       {func(n int) string { return strconv.Itoa(n % 10) }, 2, 30, "came again after page"},
		"a cycle after 1000":  {func(n int) string { return strconv.Itoa(min(n, 1000+n%7)) }, 1, 3030, "came again after page"},
		"empty pages":         {strconv.Itoa, 0, 1000, "1000 pages in a row are empty and have a continue token"},
		"pages without end":   {strconv.Itoa, 1, 100_000, "100000 pages, and another continue token"},
		"many pages, not all": {func(n int) string { return map[bool]string{true: strconv.Itoa(n)}[n < 5000] }, 1, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &paging{token: row.token, items: row.items}
				r := reflector.New(source, store.NewIndexer[*corev1.Pod]())
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- r.Run(ctx) }()
				// Of the simulated clock: the first list takes none of it.
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				status := r.Status()
				if row.requests == 0 {
					require.True(t, status.Synced)
					require.Equal(t, 5000, source.requests)
				} else {
					require.False(t, status.Synced)
					require.LessOrEqual(t, source.requests, row.requests)
					require.Equal(t, reflector.WrongAnswer, status.Class)
					require.ErrorContains(t, status.Err, "the list has no end: ")
					require.ErrorContains(t, status.Err, row.says)
					require.ErrorContains(t, status.Err, "see whether the server, or a proxy before it, obeys the parameter continue")
				}
				cancel()
				require.NoError(t, <-ended)
			})
		})
	}
}

// TestAnItemWithoutANameIsSkipped: the copy has the rest of the list, and says that something is
// missing.
func TestAnItemWithoutANameIsSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		named := func(name string) corev1.Pod {
			return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: "1"}}
		}
		source := listwatch.FromFuncs[*corev1.Pod](func(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{named("a"), named(""), named("b")}}, nil
		}, func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewRaceFreeFake(), nil
		}, listwatch.WithoutWatchList())
		pods := store.NewIndexer[*corev1.Pod]()
		r := reflector.New(source, pods)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		synctest.Wait()
		require.Equal(t, 2, pods.Snapshot().Len())
		status := r.Status()
		require.True(t, status.Synced)
		require.Equal(t, 1, status.Skipped)
		require.Equal(t, reflector.Undecodable, status.Class)
		require.ErrorContains(t, status.Err, "object ns/ cannot be used: the object has no name")
		cancel()
		require.NoError(t, <-ended)
	})
}
