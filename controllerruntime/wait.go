package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
)

var (
	errNotBegun = fmt.Errorf("Start has not been called: %w", &cache.ErrCacheNotStarted{})
	errOver     = fmt.Errorf("Start has ended: %w", &cache.ErrCacheNotStarted{})
	errRemoved  = errors.New("RemoveInformer has ended it")
)

// runs returns an error if the cache follows nothing.
func (c *Cache) runs() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.start == nil:
		return fmt.Errorf("controllerruntime: %w", errNotBegun)
	case isClosed(c.over):
		return fmt.Errorf("controllerruntime: %w", errOver)
	}
	return nil
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// WaitForCacheSync blocks until Start has been called and all present collections are synced or
// removed. If ctx or Start ends first, it is false, and the log has the cause.
func (c *Cache) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-c.started:
	case <-ctx.Done():
		logNotSynced(fmt.Errorf("%w: %w", errNotBegun, context.Cause(ctx)))
		return false
	}
	for k, held := range c.all() {
		// A collection that was removed meanwhile ends unsynced, and is not waited for.
		if err := c.await(ctx, held, nil); err != nil && (ctx.Err() != nil || c.has(k, held)) {
			logNotSynced(err)
			return false
		}
	}
	return true
}

func logNotSynced(err error) { logger().Info("The cache is not synced", "reason", err.Error()) }

// waitSynced blocks until a collection is synced, for a caller that gets the error.
func (c *Cache) waitSynced(ctx context.Context, held *collection) error {
	return c.await(ctx, held, held.refusals)
}

// await blocks until a collection is synced, or a list of it is heard to be refused. The cache has
// been started.
func (c *Cache) await(ctx context.Context, held *collection, heard *refusals) error {
	for {
		refused := heard.next()
		if isClosed(held.copy.Synced()) { // even if ctx has ended
			return nil
		}
		if err := heard.first(); err != nil {
			return held.notSynced(reflector.Status{Err: err, Class: reflector.Classify(err)}, nil)
		}
		select {
		case <-held.copy.Synced():
			return nil
		case <-refused:
		case <-c.over:
			return held.notSynced(reflector.Status{}, errOver)
		case <-held.copy.Done():
			if isClosed(c.over) {
				return held.notSynced(reflector.Status{}, errOver)
			}
			if err := c.whyEnded(held); err != nil {
				return err
			}
			return held.notSynced(reflector.Status{}, errRemoved)
		case <-ctx.Done():
			return held.notSynced(held.copy.Status().Status, context.Cause(ctx))
		}
	}
}

// unsynced is the error of a wait for a collection. Its causes are the server's answer, the end of
// the wait, and a timeout as controller-runtime's own cache returns it. The functions of apierrors
// look at the first one that is a status.
type unsynced struct {
	text   string
	causes []error
}

func (e *unsynced) Error() string   { return e.text }
func (e *unsynced) Unwrap() []error { return e.causes }

// notSynced says why the collection is not synced: the failure in its status, and the end of the
// wait, if it has one.
func (c *collection) notSynced(s reflector.Status, end error) error {
	e := &unsynced{text: fmt.Sprintf("controllerruntime: %s: not synced", c.kind)}
	if s.Err != nil {
		e.add(c.cause(s))
	}
	if s.Class == reflector.Forbidden && c.isOneOfMany() {
		e.text += ": OneWatch needs the right to list and watch all namespaces: grant it, or remove OneWatch"
	}
	if s.Attempts > 0 {
		e.text += fmt.Sprintf(" (%d attempts since %s)", s.Attempts, s.Since.Format(time.TimeOnly))
	}
	if end != nil {
		e.add(end)
		e.causes = append(e.causes, apierrors.NewTimeoutError("failed waiting for the informer to sync", 0))
	}
	return e
}

func (e *unsynced) add(cause error) {
	e.text += ": " + cause.Error()
	e.causes = append(e.causes, cause)
}

// cause is the failure in a status, with its class. A 404 of a list concerns the kind:
// apierrors.IsNotFound must not be true, since readers take that for a deleted object.
func (s shape) cause(of reflector.Status) error {
	if of.Class == reflector.NotFound {
		return fmt.Errorf("%s: %w: %v", of.Class, s.noKind(), of.Err)
	}
	return fmt.Errorf("%s: %w", of.Class, of.Err)
}

// noKind is controller-runtime's error for a kind that the server does not have.
func (s shape) noKind() error {
	return &meta.NoKindMatchError{GroupKind: s.kind.GroupKind(), SearchedVersions: []string{s.kind.Version}}
}

// refusals are the parts of a collection whose last LIST was answered with 401, 403 or 404. Watch
// lists do not count: a LIST follows at once if one is refused. A nil pointer hears nothing.
type refusals struct {
	changed signal.Signal // broadcast after each refusal

	mu     sync.Mutex
	latest map[string]error // by the name of the part
}

func newRefusals() *refusals { return &refusals{latest: map[string]error{}} }

// heardFrom returns a source whose lists are heard.
func (r *refusals) heardFrom(source listwatch.ListerWatcher[object], part string) listwatch.ListerWatcher[object] {
	if r == nil {
		return source
	}
	return listwatch.Intercept(source, func(request metav1.ListOptions, list listwatch.List[object]) listwatch.List[object] {
		if request.Limit == 1 { // a probe of a copy that is synced
			return list
		}
		items := list.Items
		list.Items = func(yield func(object, error) bool) {
			whole := true
			for obj, err := range items {
				if err != nil {
					whole = false
					r.ended(part, err)
				}
				if !yield(obj, err) {
					return
				}
			}
			if whole {
				r.ended(part, nil)
			}
		}
		return list
	}, nil)
}

// ended notes the error that a list has ended with; nil if it is complete.
func (r *refusals) ended(part string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch reflector.Classify(err) {
	case reflector.Unauthorized, reflector.Forbidden, reflector.NotFound:
		if part != "" {
			err = fmt.Errorf("member %q: %w", part, err)
		}
		r.latest[part] = err
		r.changed.Broadcast()
	default:
		delete(r.latest, part)
	}
}

func (r *refusals) next() <-chan struct{} {
	if r == nil {
		return nil
	}
	return r.changed.Wait()
}

// first returns the refusal of the first part by name; nil if there is none.
func (r *refusals) first() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, part := range slices.Sorted(maps.Keys(r.latest)) {
		return r.latest[part]
	}
	return nil
}
