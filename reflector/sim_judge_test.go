package reflector

import (
	"fmt"
	"iter"
	"maps"
	"strconv"

	"github.com/tributary-go/tributary/store"
)

// judge compares a copy with the server's history after each write.
type judge struct {
	model   *model
	held    func(key string) (store.Object, bool) // as readers get it
	all     func() map[string]string              // "uid@version" by name
	at      func() string                         // the resource version
	audit   func() error
	version int
	epoch   int
}

// copied is a store with all that a reflector asks for.
type copied[T store.Object] interface {
	store.Store[T]
	store.Bookmarker
	store.Snapshotter[T]
	Get(key string) (T, bool)
}

// checkedStore has a judge of each write.
type checkedStore[T store.Object] struct {
	copied[T]
	*judge
}

// judged gives a store a judge, who reads what readers of the copy get: objects of O.
func judged[T, O store.Object](m *model, written copied[T], read copied[O], index *store.Index[O, string]) *checkedStore[T] {
	m.judge = &judge{
		model: m,
		held:  func(key string) (store.Object, bool) { return read.Get(key) },
		all: func() map[string]string {
			all := map[string]string{}
			for _, obj := range read.Snapshot().All() {
				all[obj.GetName()] = describe(obj)
			}
			return all
		},
		at:    func() string { return read.Snapshot().ResourceVersion() },
		audit: audited(read, index),
	}
	return &checkedStore[T]{written, m.judge}
}

// audited compares the ways of reading a copy: its index, the snapshot before, and the difference
// between the two.
func audited[O store.Object](read copied[O], index *store.Index[O, string]) func() error {
	last := read.Snapshot()
	seen := contents(last.All())
	return func() error {
		now := read.Snapshot()
		all := contents(now.All())
		if got := contents(last.All()); !maps.Equal(seen, got) {
			return fmt.Errorf("a snapshot of %v has turned to %v", seen, got)
		}
		for change := range store.Diff(last, now) {
			if delete(seen, change.Key); !change.Deleted() {
				seen[change.Key] = told(change.New)
			}
		}
		if !maps.Equal(all, seen) {
			return fmt.Errorf("by their differences, the copy has %v, and not %v", seen, all)
		}
		indexed := map[string]string{}
		for value := range index.Values(now) {
			for obj := range index.Objects(now, value) {
				if indexed[store.KeyOf(obj)] = told(obj); obj.GetLabels()["default"] != value {
					return fmt.Errorf("the index has %s under %q", told(obj), value)
				}
			}
		}
		if !maps.Equal(all, indexed) {
			return fmt.Errorf("the index has %v, and the copy %v", indexed, all)
		}
		last, seen = now, all
		return nil
	}
}

func contents[O store.Object](objs iter.Seq2[string, O]) map[string]string {
	all := map[string]string{}
	for key, obj := range objs {
		all[key] = told(obj)
	}
	return all
}

// told is all that an object of the model has.
func told(obj store.Object) string {
	return describe(obj) + " " + obj.GetLabels()["default"]
}

func describe(obj store.Object) string { return string(obj.GetUID()) + "@" + obj.GetResourceVersion() }

func (c *judge) failf(format string, args ...any) {
	c.model.t.Errorf("seed %d, step %d: "+format, append([]any{c.model.seed, c.model.steps}, args...)...)
}

// refuse is a fault of the store's own.
func (c *judge) refuse() error {
	if c.model.fault(100*c.model.rarity, "store refuses") != "" {
		c.model.lossy = true
		return fmt.Errorf("no room")
	}
	return nil
}

func (c *checkedStore[T]) Add(obj T) error    { return c.write(obj, c.copied.Add) }
func (c *checkedStore[T]) Update(obj T) error { return c.write(obj, c.copied.Update) }
func (c *checkedStore[T]) Delete(obj T) error { return c.write(obj, c.copied.Delete) }

func (c *checkedStore[T]) write(p T, do func(T) error) error {
	c.model.mu.Lock()
	defer c.model.mu.Unlock()
	if err := c.refuse(); err != nil {
		return err
	}
	version, _ := strconv.Atoi(p.GetResourceVersion())
	held, ok := c.held(store.KeyOf(p))
	if ok && describe(held) == describe(p) || version > fromTheFuture || version == 0 {
		return do(p) // nothing changes, or the order of the stream is all there is
	}
	if ok && c.epoch == c.model.epoch {
		// An undecodable object of a list that went back stays as it was, and is then newer than
		// the store's version. A version that the server has not reached was never true.
		before, _ := strconv.Atoi(held.GetResourceVersion())
		if version < before && before <= min(c.version, c.model.last().version) {
			c.failf("%s went back from %d to %d", p.GetName(), before, version)
		}
	}
	if version < c.version && c.epoch == c.model.epoch && !c.model.lossy {
		c.failf("event %d after version %d", version, c.version)
	}
	if err := do(p); err != nil {
		return err
	}
	c.check(version)
	return nil
}

func (c *checkedStore[T]) Bookmark(version string) error {
	c.model.mu.Lock()
	defer c.model.mu.Unlock()
	if err := c.copied.Bookmark(version); err != nil {
		return err
	}
	v, _ := strconv.Atoi(version)
	c.check(max(v, c.version))
	return nil
}

func (c *checkedStore[T]) Replace(items iter.Seq2[T, error], version func() string) error {
	c.model.mu.Lock()
	c.model.torn = false
	if err := c.refuse(); err != nil {
		c.model.lossy = c.version == 0 // nothing was lost: the old content stays
		c.model.mu.Unlock()
		return err
	}
	before := c.all()
	c.model.mu.Unlock()
	err := c.copied.Replace(items, version)
	c.model.mu.Lock()
	defer c.model.mu.Unlock()
	if err != nil {
		if !maps.Equal(before, c.all()) {
			c.failf("a list that failed changed the content")
		}
		return err
	}
	c.model.total.replaces++
	v, _ := strconv.Atoi(version())
	if c.version == 0 && v < c.model.asked && !c.model.wentBack {
		c.failf("the first state is of version %d, and the server was at %d when it was asked", v, c.model.asked)
	}
	if v < c.version && !c.model.wentBack {
		c.failf("a list went back from %d to %d", c.version, v)
	}
	c.model.lossy, c.model.wentBack = c.model.torn, c.model.behind > 0
	c.epoch, c.model.frozen = c.model.epoch, false
	for name, want := range c.model.listed {
		if held, ok := c.held(name); !ok || held.GetLabels()["default"] != want {
			c.failf("the list had %s with content %s, which the store has not (held: %t)", name, want, ok)
		}
	}
	c.check(v)
	return nil
}

// fromTheFuture is beyond all versions of the model.
const fromTheFuture = 1 << 30

// check compares the whole content with the server's state at that version (invariants 1 to 3).
func (c *judge) check(version int) {
	c.version = version
	if err := c.audit(); err != nil {
		c.failf("%v", err)
	}
	if c.model.lossy || c.epoch != c.model.epoch {
		return
	}
	if got := c.at(); got != strconv.Itoa(version) {
		c.failf("the store is at version %s, not %d", got, version)
	}
	if want := c.model.at(version).objects; !maps.Equal(want, c.all()) {
		c.failf("at version %d the server had %v, the store has %v", version, want, c.all())
	}
}
