package controllerruntime

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/internal/heap"
	"github.com/tributary-go/tributary/metrics"
)

// Bill is the cost of one kind in one form.
type Bill struct {
	// Name is that of [Cache.Status], such as "/v1, Kind=Pod, typed".
	Name string
	// Scope has the namespaces and the selectors.
	Scope string
	// StartedBy is the first call that asked for the kind: "get", "list", "informer" or "index".
	// Of a read, Caller is the function that made it.
	StartedBy, Caller string
	// Objects are held now.
	Objects int
	// ReceivedBytes is the size of all objects that have come, in lists and events, as they are on
	// the wire before compression.
	ReceivedBytes uint64
	// HeapBytes estimates the memory of the objects that are held, and of the store. All objects
	// are walked, and memory that several of them share counts once. Of a large kind, a sample of
	// the blocks stands for all, chosen by their addresses. The rest counts with fixed sizes: 200
	// bytes for each object, 50 for each part that objects share, and 100 KB. Indexes of IndexField
	// do not count.
	//
	// Of 20,000 pods, Secrets and custom resources the estimate was 0.99 to 1.05 of the heap that
	// they took, and 0.74 to 1.07 of 300, which is 0.3 MB at most.
	HeapBytes uint64
}

// Bill returns the cost of each collection, and of the objects of each lean kind, the dearest
// first. It walks all objects: that takes 25 ms for 10,000 typed pods.
func (c *Cache) Bill() []Bill {
	var all []Bill
	for _, held := range c.all() {
		all = append(all, held.bill())
	}
	for _, held := range c.allNames() {
		all = append(all, held.bill())
	}
	slices.SortFunc(all, func(a, b Bill) int {
		return cmp.Or(cmp.Compare(b.HeapBytes, a.HeapBytes), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (c *collection) bill() Bill {
	s := c.copy.Status()
	return Bill{
		Name: c.kind.String(), Scope: c.scope(), StartedBy: string(c.by), Caller: c.caller,
		Objects: s.Objects, ReceivedBytes: s.Sharing.Bytes, HeapBytes: c.heap.now(c),
	}
}

func (n *names) bill() Bill {
	s := n.refs.Status()
	return Bill{
		Name: n.kind.String(), Scope: n.scope() + ", by name", StartedBy: string(byGet),
		Objects: s.Objects, ReceivedBytes: s.Bytes, HeapBytes: heap.Of(n.present()),
	}
}

// present yields the objects that are known, and waits for none.
func (n *names) present() iter.Seq[any] {
	n.mu.Lock()
	keys := slices.Collect(maps.Keys(n.followed))
	n.mu.Unlock()
	past, cancel := context.WithCancel(context.Background())
	cancel()
	return func(yield func(any) bool) {
		for _, key := range keys {
			if obj, _ := n.refs.Get(past, key.Namespace, key.Name); obj != nil && !yield(obj) {
				return
			}
		}
	}
}

// scope has the namespaces of a kind and their selectors, for people.
func (s shape) scope() string {
	var all []string
	for _, namespace := range slices.Sorted(maps.Keys(s.configs)) {
		config := s.configs[namespace]
		text := namespace
		switch {
		case s.root:
			text = "the cluster"
		case namespace == metav1.NamespaceAll && len(s.configs) > 1:
			text = "all other namespaces"
		case namespace == metav1.NamespaceAll:
			text = "all namespaces"
		}
		if config.LabelSelector != nil && !config.LabelSelector.Empty() {
			text += fmt.Sprintf(" with labels %q", config.LabelSelector)
		}
		if config.FieldSelector != nil && !config.FieldSelector.Empty() && len(s.configs) == 1 {
			text += fmt.Sprintf(" with fields %q", config.FieldSelector)
		}
		all = append(all, text)
	}
	if len(all) > maxScopes {
		all = append(all[:maxScopes], fmt.Sprintf("and %d more", len(all)-maxScopes))
	}
	return strings.Join(all, ", ")
}

// maxScopes bounds the namespaces that a line names.
const maxScopes = 10

// perObject is the memory of the store and of sharing for each object: its key, its entries in the
// store, in the index of namespaces and in the digests of the decoder. Each part that objects share
// has an entry of perPart in the memo of its kind. TestBillIsNearTheHeap compares.
const (
	perCollection = 100 << 10
	perObject     = 200
	perPart       = 50
)

// heapEstimate is the last estimate of the memory of a collection.
type heapEstimate struct {
	mu      sync.Mutex
	objects int
	bytes   uint64
}

// now estimates anew.
func (e *heapEstimate) now(of *collection) uint64 {
	state := of.copy.Snapshot()
	bytes := heap.Of(func(yield func(any) bool) {
		for _, obj := range state.All() {
			if !yield(obj) {
				return
			}
		}
	})
	bytes += perCollection + perObject*uint64(state.Len()) + perPart*uint64(of.copy.Status().Sharing.Entries)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.objects, e.bytes = state.Len(), bytes
	return bytes
}

// recent is the last estimate, in proportion to the objects that are held now. It estimates anew if
// their number is another one by a quarter: a scrape must not walk all objects each time.
func (e *heapEstimate) recent(of *collection) uint64 {
	objects := of.copy.Snapshot().Len()
	e.mu.Lock()
	was, bytes := e.objects, e.bytes
	e.mu.Unlock()
	if change := max(objects-was, was-objects); was == 0 || change > was/4 {
		return e.now(of)
	}
	return bytes / uint64(was) * uint64(objects)
}

var heapTable = metrics.NewTable([]string{"informer"},
	metrics.Gauge("tributary_informer_heap_bytes", "Memory of the objects, as estimated.", metrics.Itself[uint64]))

// Samples implements [metrics.Reporter], for prom.Metrics.Track and the status page. Each kind
// reports under its own name, as in [Cache.Status]. A collection reports its estimated memory too,
// which [Bill] explains; the first call walks all objects, and so does one after the number of
// objects has changed by a quarter.
func (c *Cache) Samples(string) iter.Seq[metrics.Sample] {
	var all []metrics.Sample
	for k, held := range c.all() {
		all = slices.AppendSeq(all, held.copy.Status().Samples(k.String()))
		all = append(all, heapTable(held.heap.recent(held), k.String())...)
	}
	for _, held := range c.allNames() {
		all = slices.AppendSeq(all, held.refs.Samples(held.kind.String()))
	}
	return slices.Values(all)
}

// Causes implements [metrics.Explainer].
func (c *Cache) Causes(string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, s := range c.Status() {
			for name, cause := range s.Status.Causes(s.Name) {
				if !yield(name, cause) {
					return
				}
			}
		}
		for _, held := range c.allNames() {
			for name, cause := range held.refs.Causes(held.kind.String()) {
				if !yield(name, cause) {
					return
				}
			}
		}
	}
}

// Status returns the health of each collection, ordered by name. It does not block.
//
//	health := mgr.GetCache().(*controllerruntime.Cache).Status()
func (c *Cache) Status() []informer.CopyStatus {
	var all []informer.CopyStatus
	for k, held := range c.all() {
		all = append(all, informer.CopyStatus{Name: k.String(), Status: held.copy.Status()})
	}
	slices.SortFunc(all, func(a, b informer.CopyStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (c *Cache) all() map[kind]*collection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.collections)
}

func (c *Cache) allNames() []*names {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.names))
}
