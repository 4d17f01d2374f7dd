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

// wish is a state of the upstream for which readers wait.
type wish struct {
	exact   uint64 // its version; zero: the newest state
	readers int    // guarded by the proof's mu
}

// compareFor has the copy compared with the upstream, at an exact version or at its newest if that
// is zero, until leave is called. It does nothing if a list of the upstream is not worth its cost.
func (p *proof[T]) compareFor(exact uint64) (leave func()) {
	if _, ok := p.upstream.(lister); !ok || p.cache.Snapshot().Len() > mostCompared {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.wishes, func(w *wish) bool { return w.exact == exact })
	if i < 0 {
		i = len(p.wishes)
		p.wishes = append(p.wishes, &wish{exact: exact})
	}
	own := p.wishes[i]
	own.readers++
	stop := p.comparing.join(p.compareAll)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if own.readers--; own.readers == 0 {
			p.drop(own)
		}
		stop()
	}
}

// drop ends the lists for a wish; mu is held.
func (p *proof[T]) drop(w *wish) {
	p.wishes = slices.DeleteFunc(p.wishes, func(other *wish) bool { return other == w })
}

// compareAll compares the copy with the upstream for as long as readers wait. An exact list that
// fails is not made again: its readers wait for a bookmark.
func (p *proof[T]) compareAll(ctx context.Context) {
	for pause := compareDelay; ; {
		p.mu.Lock()
		pause = max(pause, time.Until(p.compareAt))
		p.mu.Unlock()
		if !pace.Sleep(ctx, pause) {
			return
		}
		pause = askEvery
		w, options := p.listable(ctx)
		if w == nil {
			continue
		}
		began := time.Now()
		listed, err := p.inventory(ctx, options)
		p.mu.Lock()
		p.compareAt = time.Now().Add(comparePause * time.Since(began))
		if err != nil && w.exact > 0 { // the upstream may have forgotten it
			p.drop(w)
		}
		p.mu.Unlock()
		switch {
		case err != nil && w.exact == 0:
			pause = askAgain
		case err != nil:
		case p.cache.settle(ctx, listed):
			pause = compareDelay
		}
	}
}

// listable is the first wish that a list can fulfil, with the options of the list. Readers may wait
// for a version that was never written.
func (p *proof[T]) listable(ctx context.Context) (*wish, metav1.ListOptions) {
	now, err := p.cache.latest()
	if err != nil {
		return nil, metav1.ListOptions{}
	}
	w, options := p.take(now.version)
	if w == nil {
		if _, err = p.newest(ctx); err == nil {
			w, options = p.take(now.version)
		}
	}
	return w, options
}

// take moves the first wish that a list can fulfil to the end; the copy is at version.
func (p *proof[T]) take(version uint64) (*wish, metav1.ListOptions) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.wishes {
		options := metav1.ListOptions{
			ResourceVersion: formatVersion(p.told), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		}
		least := version + 1
		if w.exact > 0 {
			options.ResourceVersion, options.ResourceVersionMatch = formatVersion(w.exact), metav1.ResourceVersionMatchExact
			least = w.exact
		}
		if p.told >= least {
			p.drop(w)
			p.wishes = append(p.wishes, w)
			return w, options
		}
	}
	return nil, metav1.ListOptions{}
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

// inventory lists the upstream's content.
func (p *proof[T]) inventory(ctx context.Context, options metav1.ListOptions) (inventory, error) {
	c := p.cache
	listed := inventory{lists: c.lists.Load(), missing: map[string]identity{}}
	now, err := c.copied()
	if err != nil {
		return listed, err
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	objects, at := p.upstream.(lister).contents(ctx, options)
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
