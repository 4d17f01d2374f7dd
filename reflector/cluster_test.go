package reflector_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// cluster is a source whose state a test sets at any time. Its watch sends bookmarks while told to,
// and no events: what it sends is of the test.
type cluster struct {
	mu        sync.Mutex // guards the fields below
	version   string
	pods      []*corev1.Pod
	origin    any
	noLists   error // of probes
	lookups   bool  // it answers those
	noLookups error // or with this
	probes    int
	lists     int
	gone      bool          // each watch is answered with 410
	cut       chan struct{} // closes to end the watches
	bookmark  string        // sent each 30 s, if any
}

func newCluster(version string, pods ...*corev1.Pod) *cluster {
	return &cluster{version: version, pods: pods, cut: make(chan struct{})}
}

func (c *cluster) IsWatchListSemanticsUnSupported() bool { return true }

func (c *cluster) Origin() any { return c.origin }

func (c *cluster) become(version string, pods ...*corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version, c.pods = version, pods
	close(c.cut)
	c.cut = make(chan struct{})
}

// set changes what is answered, under the lock.
func (c *cluster) set(do func(c *cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c)
}

// asked counts the requests.
func (c *cluster) asked() (lists, probes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists, c.probes
}

func (c *cluster) List(_ context.Context, o metav1.ListOptions) listwatch.List[*corev1.Pod] {
	c.mu.Lock()
	defer c.mu.Unlock()
	pods, meta := slices.Clone(c.pods), metav1.ListMeta{ResourceVersion: c.version}
	probe := o.Limit == 1 || o.Limit == sweepPage
	switch {
	case !probe:
		c.lists++
	case len(pods) > int(o.Limit):
		meta.Continue, pods = "more", pods[:o.Limit]
	}
	if probe {
		c.probes++
	}
	failed := c.noLists
	return listwatch.List[*corev1.Pod]{Meta: func() metav1.ListMeta { return meta }, Items: func(yield func(*corev1.Pod, error) bool) {
		if probe && failed != nil {
			yield(nil, failed)
			return
		}
		for _, p := range pods {
			if p.Name == "" {
				if !yield(nil, &listwatch.DecodeError{Op: "list", Object: "bad", Err: errors.New("no pod")}) {
					return
				}
			} else if !yield(p, nil) {
				return
			}
		}
	}}
}

func (c *cluster) Lookup(_ context.Context, _, name string) (listwatch.List[*corev1.Pod], bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := slices.DeleteFunc(slices.Clone(c.pods), func(p *corev1.Pod) bool { return p.Name != name })
	meta, items := metav1.ListMeta{ResourceVersion: c.version}, store.Items(found...)
	if refused := c.noLookups; refused != nil {
		items = func(yield func(*corev1.Pod, error) bool) { yield(nil, refused) }
	}
	return listwatch.List[*corev1.Pod]{Meta: func() metav1.ListMeta { return meta }, Items: items}, c.lookups
}

func (c *cluster) Watch(ctx context.Context, _ metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		c.mu.Lock()
		cut, gone := c.cut, c.gone
		c.mu.Unlock()
		if gone {
			yield(listwatch.Event[*corev1.Pod]{}, apierrors.NewResourceExpired("too old"))
			return
		}
		for {
			select {
			case <-ctx.Done():
				yield(listwatch.Event[*corev1.Pod]{}, ctx.Err())
				return
			case <-cut:
				yield(listwatch.Event[*corev1.Pod]{}, errors.New("connection reset by peer"))
				return
			case <-time.After(30 * time.Second):
				c.mu.Lock()
				bookmark := c.bookmark
				c.mu.Unlock()
				if bookmark != "" && !yield(listwatch.Event[*corev1.Pod]{Type: watch.Bookmark, ResourceVersion: bookmark}, nil) {
					return
				}
			}
		}
	}
}

// sweepPage is the reflector's own.
const sweepPage = 300

// podsOf makes n pods of one version, whose UIDs name their cluster.
func podsOf(cluster, version string, n int) (all []*corev1.Pod) {
	for i := range n {
		all = append(all, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("pod-%02d", i), UID: types.UID(cluster + strconv.Itoa(i)), ResourceVersion: version,
		}})
	}
	return all
}

// follow runs a reflector until the test's end.
func follow(t *testing.T, source listwatch.ListerWatcher[*corev1.Pod], options ...reflector.Option) (*reflector.Reflector[*corev1.Pod], *store.Indexer[*corev1.Pod]) {
	pods := store.NewIndexer[*corev1.Pod]()
	r := reflector.New(source, pods, options...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	require.NoError(t, r.WaitSynced(ctx))
	synctest.Wait() // it watches
	return r, pods
}

// uids are those of the pods held.
func uids(pods *store.Indexer[*corev1.Pod]) (all []string) {
	for _, p := range pods.Snapshot().Sorted() {
		all = append(all, string(p.UID))
	}
	return all
}
