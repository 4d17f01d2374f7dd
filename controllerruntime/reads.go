package controllerruntime

import (
	"context"
	"errors"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Reads makes requests the owners of the objects of lean kinds that they read. It is both a
// reconciler and a source of requests:
//
//	reads := controllerruntime.NewReads(reconciler)
//	ctrl.NewControllerManagedBy(mgr).For(&v1.App{}).WatchesRawSource(reads).Complete(reads)
//
// A request is queued when an object that it has read is in another state: changed, deleted, or
// created since. An object is kept as long as a request has read it in its last reconcile. If a
// reconcile fails, the objects of the one before are kept too.
//
// Reads finds the objects by the context that it gives to the reconciler, which must pass it on to
// Get. One Reads is for one controller, and for any number of caches.
type Reads[R comparable] struct {
	next reconcile.TypedReconciler[R]

	mu       sync.Mutex
	queue    workqueue.TypedRateLimitingInterface[R]
	requests map[R]map[place]state
}

// NewReads returns the Reads of a reconciler.
func NewReads[R comparable](next reconcile.TypedReconciler[R]) *Reads[R] {
	return &Reads[R]{next: next, requests: map[R]map[place]state{}}
}

// Start implements source.TypedSource, for a controller.
func (r *Reads[R]) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[R]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = queue
	return nil
}

// Reconcile implements reconcile.TypedReconciler. It fails if the controller has not started r as a
// source, since no change would be told.
func (r *Reads[R]) Reconcile(ctx context.Context, request R) (reconcile.Result, error) {
	r.mu.Lock()
	started := r.queue != nil
	r.mu.Unlock()
	if !started {
		return reconcile.Result{}, errors.New("controllerruntime: Reads is no source of this controller: give it to WatchesRawSource too")
	}
	noted := &reading{places: map[place]state{}}
	result, err := r.next.Reconcile(context.WithValue(ctx, readingKey{}, noted), request)
	r.ended(request, noted.end(), err == nil)
	return result, err
}

// ended makes the request the owner of the objects that it has read.
func (r *Reads[R]) ended(request R, read map[place]state, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	owner := owner[R]{r, request}
	for at, state := range r.requests[request] {
		if _, again := read[at]; again {
			continue
		}
		if whole {
			at.names.disown(at.key, owner)
		} else {
			read[at] = state
		}
	}
	changed := false
	for at, state := range read {
		changed = at.names.own(at.key, owner, state) || changed
	}
	if r.requests[request] = read; len(read) == 0 {
		delete(r.requests, request)
	}
	if changed {
		r.queue.Add(request)
	}
}

// place is where an object is kept.
type place struct {
	names *names
	key   client.ObjectKey
}

// reading has the objects that one reconcile has read.
type reading struct {
	mu     sync.Mutex
	places map[place]state // the first state of each
	over   bool
}

type readingKey struct{}

// noteRead notes a read for the reconcile of its context, if there is one.
func noteRead(ctx context.Context, at place, seen state) {
	noted, ok := ctx.Value(readingKey{}).(*reading)
	if !ok {
		return
	}
	noted.mu.Lock()
	defer noted.mu.Unlock()
	if _, before := noted.places[at]; !before && !noted.over {
		noted.places[at] = seen
	}
}

// end returns the objects and their states. Later reads count for nothing.
func (r *reading) end() map[place]state {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return r.places
}

// reader is told that an object which it has read has changed.
type reader interface{ changed() }

// owner is a request of one controller.
type owner[R comparable] struct {
	reads   *Reads[R]
	request R
}

func (o owner[R]) changed() {
	o.reads.mu.Lock()
	queue := o.reads.queue
	o.reads.mu.Unlock()
	queue.Add(o.request)
}

// own follows a name for a reader that has read it in that state. It reports whether the state is
// known to be another one now.
func (n *names) own(key client.ObjectKey, of reader, read state) (changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	held := n.followLocked(key)
	held.readers[of] = read
	n.first.Do(func() { close(n.told) })
	return held.latest != (state{}) && held.latest != read
}

func (n *names) disown(key client.ObjectKey, of reader) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if held := n.followed[key]; held != nil {
		delete(held.readers, of)
	}
}

// tell tells readers of changes, once there is one.
func (n *names) tell(ctx context.Context) {
	select {
	case <-n.told:
	case <-ctx.Done():
		return
	}
	for change := range n.refs.Changes(ctx) {
		if len(change.Owners) == 0 { // the name was let go
			continue
		}
		for _, reader := range n.changed(change.Name, stateOf(change.New)) {
			reader.changed()
		}
	}
}

// changed notes the state of a name, and returns the readers that have read another one.
func (n *names) changed(key client.ObjectKey, now state) (others []reader) {
	n.mu.Lock()
	defer n.mu.Unlock()
	held := n.followed[key]
	if held == nil {
		return nil
	}
	held.latest = now
	for reader, read := range held.readers {
		if read != now {
			others = append(others, reader)
		}
	}
	return others
}
