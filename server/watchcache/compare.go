package watchcache

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/pace"
)

const (
	// compareDelay is how long a change may be on its way before a list is spent on a proof.
	compareDelay = 5 * time.Millisecond
	// comparePause is the pause after a list, in times of the list's own duration.
	comparePause = 9
	// compareWait is how long the copy is given to catch up with a list.
	compareWait = time.Second
	// mostCompared is how many objects are listed: of more, a list takes as long as a bookmark.
	mostCompared = 20_000
	// mostBehind is how many objects may differ when a list has come.
	mostBehind = 1024
	// mostStates is how many states that are known by comparison have their pages read.
	mostStates = 16
)

// errFarBehind has a proof wait for events before it lists again.
var errFarBehind = errors.New("the copy is far behind its upstream")

// lister is an [Upstream] that can list the metadata of the objects that the cache copies.
type lister interface {
	contents(ctx context.Context, options metav1.ListOptions) (objects iter.Seq2[metav1.Object, error], resourceVersion func() string)
}

// compare has the copy compared with the upstream until leave is called. It does nothing if a list
// of the upstream is not worth its cost.
func (p *proof[T]) compare() (leave func()) {
	if _, ok := p.upstream.(lister); !ok || p.cache.Snapshot().Len() > mostCompared {
		return func() {}
	}
	return p.comparing.join(p.compareAll)
}

// compareAll compares the copy with the upstream for as long as readers wait.
func (p *proof[T]) compareAll(ctx context.Context) {
	for pause := compareDelay; ; {
		p.mu.Lock()
		pause = max(pause, time.Until(p.compareAt))
		p.mu.Unlock()
		if !pace.Sleep(ctx, pause) {
			return
		}
		version, ahead := p.ahead(ctx)
		if pause = askEvery; !ahead {
			continue
		}
		began := time.Now()
		listed, err := p.inventory(ctx, version)
		p.mu.Lock()
		p.compareAt = time.Now().Add(comparePause * time.Since(began))
		p.mu.Unlock()
		switch {
		case err != nil:
			pause = askAgain
		case p.cache.settle(ctx, listed):
			pause = compareDelay
		}
	}
}

// ahead is the newest version that the upstream has told, and whether it is newer than the newest
// state that is known. Readers may wait for a version that was never written.
func (p *proof[T]) ahead(ctx context.Context) (version uint64, ahead bool) {
	p.mu.Lock()
	version = p.told
	p.mu.Unlock()
	if !p.cache.shows(version) {
		return version, true
	}
	version, err := p.newest(ctx)
	return version, err == nil && !p.cache.shows(version)
}

// inventory is a list of the upstream, beside a cache.
type inventory struct {
	version uint64
	objects int
	missing map[string]identity // what the cache did not hold when the list came
	lists   uint64              // how often the cache had been replaced when it was asked for
}

// identity tells apart all states of all objects.
type identity struct {
	uid     types.UID
	version string
}

func identityOf(obj metav1.Object) identity { return identity{obj.GetUID(), obj.GetResourceVersion()} }

// inventory lists the upstream's content, no older than version: the upstream has it in its cache.
func (p *proof[T]) inventory(ctx context.Context, version uint64) (inventory, error) {
	c := p.cache
	listed := inventory{lists: c.lists.Load(), missing: map[string]identity{}}
	now, err := c.copied()
	if err != nil {
		return listed, err
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	objects, at := p.upstream.(lister).contents(ctx, metav1.ListOptions{
		ResourceVersion: formatVersion(version), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	for obj, err := range objects {
		switch {
		case undecodable(err): // it is in no copy either
			continue
		case err != nil:
			return listed, err
		}
		listed.objects++
		key := c.kind.Key(obj.GetNamespace(), obj.GetName())
		if held, ok := now.present.Get(key); !ok || identityOf(held) != identityOf(obj) {
			listed.missing[key] = identityOf(obj)
		}
		if len(listed.missing) > mostBehind {
			return listed, errFarBehind
		}
	}
	listed.version, err = parseVersion("list", at())
	return listed, err
}

// settle waits until the cache holds what the upstream has listed, and notes the version of that
// state. It is false if that takes too long.
func (c *Cache[T]) settle(ctx context.Context, listed inventory) bool {
	ctx, cancel := context.WithTimeout(ctx, compareWait)
	defer cancel()
	settled := c.changed.Until(ctx.Done(), func() bool { return c.settled(listed) })
	if settled {
		c.changed.Broadcast()
	}
	return settled
}

// settled notes the version of a list whose objects are the cache's. It reports whether there is
// nothing more to wait for. The objects that the cache held when the list came it still holds, or
// it has had an event that is newer than the list.
func (c *Cache[T]) settled(listed inventory) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version >= listed.version || c.lists.Load() != listed.lists {
		return true
	}
	now := c.present()
	if c.replacing != nil || now.Len() != listed.objects {
		return false
	}
	for key, identity := range listed.missing {
		if held, ok := now.Get(key); !ok || identityOf(held) != identity {
			return false
		}
	}
	at, known := slices.BinarySearchFunc(c.states, listed.version, func(v view[T], version uint64) int {
		return cmp.Compare(v.version, version)
	})
	if known {
		return true
	}
	c.states = slices.Insert(c.states, at, view[T]{present: now, version: listed.version, next: c.window.Next(), early: true})
	if len(c.states) > mostStates {
		dropped := 0 // the oldest
		if at == 0 { // just inserted, and a reader waits for it
			dropped = 1
		}
		c.states = slices.Delete(c.states, dropped, dropped+1)
	}
	return true
}

// compared is the state at a version, if it is known by comparison.
func (c *Cache[T]) compared(version uint64) (state view[T], ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, state = range c.states {
		if state.version == version {
			return state, true
		}
	}
	return view[T]{}, false
}

// shows reports whether the newest state that is known is that of version or of a later one.
func (c *Cache[T]) shows(version uint64) bool {
	newest, err := c.latest()
	return err == nil && newest.version >= version
}
