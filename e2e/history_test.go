package e2e_test

import (
	"fmt"
	"iter"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/tributary-go/tributary/store"
)

// history is an indexer that checks each change as a consumer sees it: the difference between two
// snapshots. What it finds wrong it keeps, for a test to look at.
type history[T store.Object] struct {
	*store.Indexer[T]

	mu         sync.Mutex // guards what follows
	held       map[string]T
	newest     map[types.UID]string // the newest version seen of each object
	gone       map[types.UID]bool
	deletions  int
	replaces   int
	replacedAt time.Time
	violations []string
}

func newHistory[T store.Object]() *history[T] {
	return &history[T]{
		Indexer: store.NewIndexer[T](), held: map[string]T{}, newest: map[types.UID]string{}, gone: map[types.UID]bool{},
	}
}

func (h *history[T]) Add(obj T) error { return h.change(func() error { return h.Indexer.Add(obj) }) }
func (h *history[T]) Update(obj T) error {
	return h.change(func() error { return h.Indexer.Update(obj) })
}
func (h *history[T]) Delete(obj T) error {
	return h.change(func() error { return h.Indexer.Delete(obj) })
}

func (h *history[T]) Replace(items iter.Seq2[T, error], resourceVersion func() string) error {
	return h.change(func() error {
		err := h.Indexer.Replace(items, resourceVersion)
		if err == nil {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.replaces++
			h.replacedAt = time.Now()
		}
		return err
	})
}

// change makes one change to the indexer and goes through what came of it.
func (h *history[T]) change(do func() error) error {
	before := h.Indexer.Snapshot()
	if err := do(); err != nil {
		return err
	}
	after := h.Indexer.Snapshot()
	h.mu.Lock()
	defer h.mu.Unlock()
	if older(after.ResourceVersion(), before.ResourceVersion()) {
		h.violated("the store went back from version %s to %s", before.ResourceVersion(), after.ResourceVersion())
	}
	for c := range store.Diff(before, after) {
		h.take(c)
	}
	return nil
}

func (h *history[T]) take(c store.Change[T]) {
	if any(c.Old) != any(h.held[c.Key]) {
		h.violated("%s: the change does not start at the state that was delivered last", c.Key)
	}
	if c.Deleted() {
		delete(h.held, c.Key)
		h.gone[c.Old.GetUID()] = true
		h.deletions++
		return
	}
	h.held[c.Key] = c.New
	if any(c.New) == any(*new(T)) {
		h.violated("%s: neither old nor new", c.Key)
		return
	}
	uid, version := c.New.GetUID(), c.New.GetResourceVersion()
	if h.gone[uid] {
		h.violated("%s: uid %s came back after its deletion", c.Key, uid)
	}
	if last, known := h.newest[uid]; known && !older(last, version) {
		h.violated("%s: went from version %s to %s", c.Key, last, version)
	}
	h.newest[uid] = version
}

func (h *history[T]) violated(format string, a ...any) {
	h.violations = append(h.violations, fmt.Sprintf(format, a...))
}

// account is what the history has counted so far.
type account struct {
	held, deletions, replaces int
	replacedAt                time.Time // when the newest list was complete
	violations                []string
}

func (h *history[T]) account() account {
	h.mu.Lock()
	defer h.mu.Unlock()
	return account{held: len(h.held), deletions: h.deletions, replaces: h.replaces, replacedAt: h.replacedAt, violations: h.violations}
}

// older reports whether version a is older than b. Where either is none, it is not.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
