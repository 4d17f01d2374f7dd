package watchcache

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	contents(ctx context.Context, version string) (objects iter.Seq2[metav1.Object, error], resourceVersion func() string)
}

// mayCompare reports whether a list of the upstream is worth its cost.
func (p *proof[T]) mayCompare() bool {
	_, ok := p.upstream.(lister)
	return ok && p.cache.Snapshot().Len() <= mostCompared
}

// compareAll compares the copy with the upstream for as long as readers wait.
func (p *proof[T]) compareAll(ctx context.Context) {
	for pause := compareDelay; ; {
		p.mu.Lock()
		pause = max(pause, time.Until(p.compareAt))
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = askEvery
		newest, behind := p.behind(ctx)
		if !behind {
			continue
		}
		began := time.Now()
		listed, err := p.inventory(ctx, newest)
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

// behind reports whether the upstream has told a version that the cache does not show, and which. A
// reader may wait for a version that nobody has written.
func (p *proof[T]) behind(ctx context.Context) (told uint64, behind bool) {
	p.mu.Lock()
	told = p.told
	p.mu.Unlock()
	now, err := p.cache.latest()
	if err == nil && told <= now.version {
		told, err = p.newest(ctx)
	}
	return told, err == nil && told > now.version
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

// inventory lists the upstream's content, not older than a version. That version has been told by
// the upstream, which need not ask its own storage again.
func (p *proof[T]) inventory(ctx context.Context, version uint64) (inventory, error) {
	c := p.cache
	listed := inventory{lists: c.lists.Load(), missing: map[string]identity{}}
	now, err := c.copied()
	if err != nil {
		return listed, err
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	objects, at := p.upstream.(lister).contents(ctx, formatVersion(version))
	for obj, err := range objects {
		switch {
		case undecodable(err): // it is in no copy either
			continue
		case err != nil:
			return listed, err
		}
		listed.objects++
		key := c.resource.Key(obj.GetNamespace(), obj.GetName())
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
	for {
		changed := c.changed.Wait()
		if c.settled(listed) {
			c.changed.Broadcast()
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
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
	if n := len(c.states); n > 0 && c.states[n-1].version >= listed.version {
		return true
	}
	if len(c.states) == mostStates {
		c.states = slices.Delete(c.states, 0, 1)
	}
	c.states = append(c.states, view[T]{present: now, version: listed.version, next: c.window.Next(), early: true})
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
