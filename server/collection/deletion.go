package collection

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/server/internal/object"
)

// Delete asks for the end of an object, as a client does. An object with finalizers, or with a
// grace period (see [Rules.GracePeriod]), stays, marked with a deletion time, until
// the finalizers are dropped and a delete with period zero comes; others go at once. It returns the
// object as it is now, or was last. Propagation policies leave the object with the finalizer that a
// garbage collector waits for; none runs here. DryRun of the options does not count: see
// [Collection.With]. Errors: NotFound; Conflict when a precondition fails.
func (c *Collection[T]) Delete(namespace, name string, options metav1.DeleteOptions) (T, error) {
	result, marked, err := c.mark(namespace, name, options)
	if err != nil || marked.stays {
		return result, err
	}
	uid, version := result.GetUID(), result.GetResourceVersion()
	again := metav1.Preconditions{UID: &uid}
	if options.Preconditions != nil && options.Preconditions.ResourceVersion != nil {
		again.ResourceVersion = &version
	}
	last, err := c.remove(namespace, name, again)
	if apierrors.IsConflict(err) && ptr.Deref(options.Preconditions, metav1.Preconditions{}) == (metav1.Preconditions{}) {
		err = c.notFound(name) // another deletion was faster: the client did not ask for a UID
	}
	if err == nil && len(last.GetFinalizers()) > 0 { // the policy has dropped them
		last = object.Copy(last)
		last.SetFinalizers(nil)
	}
	return last, err
}

// Remove takes an object away at once, whatever its finalizers and grace period. The owner of the
// object, such as a kubelet, does so in the end. Error: NotFound.
func (c *Collection[T]) Remove(namespace, name string) (T, error) {
	return c.remove(namespace, name, metav1.Preconditions{})
}

// verdict is the result of marking an object for deletion.
type verdict struct{ changed, stays bool }

// mark notes on the object that it is to go, where there is something to note.
func (c *Collection[T]) mark(namespace, name string, options metav1.DeleteOptions) (result T, v verdict, err error) {
	result, err = c.storage.Write(c.Kind().Key(namespace, name), func(stored T, found bool) (d Decision[T], err error) {
		err = c.there(found, name)
		if err == nil && options.Preconditions != nil {
			err = c.checkPreconditions(stored, *options.Preconditions)
		}
		if err != nil {
			return d, err
		}
		next := object.Copy(stored)
		note := c.clientRules().Delete
		noted := note != nil && stored.GetDeletionTimestamp() == nil
		if noted {
			note(next)
		}
		v = c.terminate(next, options)
		if v.changed = v.changed || noted; !v.changed {
			return Decision[T]{Op: Keep, Object: stored}, nil
		}
		return Decision[T]{Op: Put, Object: next}, nil
	})
	return result, v, err
}

// terminate marks obj and decides whether it stays.
func (c *Collection[T]) terminate(obj T, options metav1.DeleteOptions) verdict {
	pending, changed := c.startGrace(obj, options.GracePeriodSeconds)
	if pending && !changed {
		return verdict{stays: true}
	}
	finalizers := c.rules.Dependents.finalizers(obj.GetFinalizers(), options)
	if !sets.New(finalizers...).Equal(sets.New(obj.GetFinalizers()...)) {
		obj.SetFinalizers(finalizers)
		changed = changed || len(finalizers) > 0 // what goes at once is not written before
	}
	held := c.Held(obj)
	if held && obj.GetDeletionTimestamp() == nil {
		markDeleted(obj, now(), 0)
		changed = true
	}
	return verdict{changed: changed, stays: held || pending}
}

// Held reports whether an object that is deleted stays until a later write releases it: it has
// finalizers, or is held by the rules of its kind.
func (c *Collection[T]) Held(obj T) bool {
	return len(obj.GetFinalizers()) > 0 || c.rules.Held != nil && c.rules.Held(obj)
}

// markDeleted notes that obj is to go, and counts that as a change of the spec.
func markDeleted(obj metav1.Object, end metav1.Time, period int64) {
	obj.SetDeletionTimestamp(&end)
	obj.SetDeletionGracePeriodSeconds(&period)
	if obj.GetGeneration() > 0 {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
}

// startGrace starts the grace period of an object, if its kind has one, or shortens the period that
// runs. It reports whether a period runs then.
func (c *Collection[T]) startGrace(obj T, requested *int64) (pending, changed bool) {
	if c.rules.GracePeriod == nil {
		return false, false
	}
	if requested != nil && *requested < 0 {
		requested = ptr.To[int64](1) // the API server's reading of a negative period
	}
	running, since := obj.GetDeletionGracePeriodSeconds(), obj.GetDeletionTimestamp()
	switch {
	case since == nil:
		period := c.rules.GracePeriod(obj, requested)
		markDeleted(obj, metav1.NewTime(now().Add(time.Duration(period)*time.Second)), period)
		return period > 0, true
	case running == nil || *running == 0:
		return false, false
	case requested == nil || *requested >= *running:
		return true, false
	}
	period := *requested
	end := metav1.NewTime(since.Add(time.Duration(period-*running) * time.Second))
	if present := now(); end.Before(&present) {
		end = present
		period = min(period, 1) // a period that is over is not none
	}
	obj.SetDeletionTimestamp(&end)
	obj.SetDeletionGracePeriodSeconds(&period)
	return period > 0, true
}

// finalizers are those of an object that is deleted with these options: the garbage collector
// releases the object once its dependents are orphaned, or gone.
func (d Dependents) finalizers(present []string, options metav1.DeleteOptions) (kept []string) {
	var waits string // the finalizer for the garbage collector
	switch {
	case slices.Contains(present, metav1.FinalizerOrphanDependents), d == OrphanDependents && !slices.Contains(present, metav1.FinalizerDeleteDependents):
		waits = metav1.FinalizerOrphanDependents
	case slices.Contains(present, metav1.FinalizerDeleteDependents):
		waits = metav1.FinalizerDeleteDependents
	}
	//lint:ignore SA1019 old clients send it, and the API server heeds it
	switch orphans, policy := options.OrphanDependents, options.PropagationPolicy; {
	case d == IgnoreDependents, orphans != nil && !*orphans, policy != nil && *policy == metav1.DeletePropagationBackground:
		waits = ""
	case orphans != nil, policy != nil && *policy == metav1.DeletePropagationOrphan:
		waits = metav1.FinalizerOrphanDependents
	case policy != nil:
		waits = metav1.FinalizerDeleteDependents
	}
	for _, finalizer := range present {
		if finalizer != metav1.FinalizerOrphanDependents && finalizer != metav1.FinalizerDeleteDependents {
			kept = append(kept, finalizer)
		}
	}
	if waits != "" {
		kept = append(kept, waits)
	}
	return kept
}

func (c *Collection[T]) remove(namespace, name string, preconditions metav1.Preconditions) (result T, err error) {
	return c.storage.Write(c.Kind().Key(namespace, name), func(stored T, found bool) (d Decision[T], err error) {
		err = c.there(found, name)
		if err == nil {
			err = c.checkPreconditions(stored, preconditions)
		}
		if err != nil {
			return d, err
		}
		return Decision[T]{Op: Remove, Object: object.Copy(stored)}, nil
	})
}

func (c *Collection[T]) checkPreconditions(stored T, p metav1.Preconditions) error {
	if p.UID != nil && *p.UID != stored.GetUID() {
		return c.conflict(stored.GetName(), fmt.Errorf("the UID in the precondition (%s) does not match the UID in "+
			"record (%s): the object was deleted and created again", *p.UID, stored.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != stored.GetResourceVersion() {
		return c.conflict(stored.GetName(), fmt.Errorf("the resource version in the precondition (%s) does not match "+
			"the one in record (%s): the object has been modified", *p.ResourceVersion, stored.GetResourceVersion()))
	}
	return nil
}
