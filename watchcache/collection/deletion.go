package collection

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/watchcache/internal/object"
)

// Delete asks for the end of an object, as a client does. An object with finalizers, or with a
// grace period (see [watchcache.Resource.GracePeriod]), stays, marked with a deletion time, until
// the finalizers are dropped and a delete with period zero comes; others go at once. It returns the
// object as it is now, or was last. Of the options, GracePeriodSeconds and Preconditions count.
// Errors: NotFound; Conflict when a precondition fails.
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
	return c.remove(namespace, name, again)
}

// Remove takes an object away at once, whatever its finalizers and grace period: what the owner of
// the object does in the end, a kubelet for instance. Error: NotFound.
func (c *Collection[T]) Remove(namespace, name string) (T, error) {
	return c.remove(namespace, name, metav1.Preconditions{})
}

// verdict is what marking an object for deletion came to.
type verdict struct{ changed, stays bool }

// mark notes on the object that it is to go, where there is something to note.
func (c *Collection[T]) mark(namespace, name string, options metav1.DeleteOptions) (result T, v verdict, err error) {
	result, err = c.storage.Write(c.resource().Key(namespace, name), func(stored T, found bool) (d Decision[T], err error) {
		err = c.there(found, name)
		if err == nil && options.Preconditions != nil {
			err = c.checkPreconditions(stored, *options.Preconditions)
		}
		if err != nil {
			return d, err
		}
		next := object.Copy(stored)
		if v = c.terminate(next, options.GracePeriodSeconds); !v.changed {
			return Decision[T]{Keep, stored}, nil
		}
		return Decision[T]{Put, next}, nil
	})
	return result, v, err
}

// terminate marks obj and decides whether it stays. A grace period that runs can only be shortened.
func (c *Collection[T]) terminate(obj T, requested *int64) verdict {
	held := len(obj.GetFinalizers()) > 0
	running, since := obj.GetDeletionGracePeriodSeconds(), obj.GetDeletionTimestamp()
	if since == nil {
		graceful := c.resource().GracePeriod != nil
		if !graceful && !held {
			return verdict{}
		}
		period := c.gracePeriod(obj, requested)
		end := metav1.NewTime(now().Add(time.Duration(period) * time.Second))
		obj.SetDeletionTimestamp(&end)
		obj.SetDeletionGracePeriodSeconds(&period)
		if obj.GetGeneration() > 0 {
			obj.SetGeneration(obj.GetGeneration() + 1)
		}
		return verdict{changed: true, stays: held || period > 0}
	}
	if running == nil || *running == 0 {
		return verdict{stays: held}
	}
	if requested == nil || *requested >= *running {
		return verdict{stays: true}
	}
	period := max(*requested, 0)
	end := metav1.NewTime(since.Add(time.Duration(period-*running) * time.Second))
	if present := now(); end.Before(&present) {
		end = present
	}
	obj.SetDeletionTimestamp(&end)
	obj.SetDeletionGracePeriodSeconds(&period)
	return verdict{changed: true, stays: held || period > 0}
}

func (c *Collection[T]) gracePeriod(obj T, requested *int64) int64 {
	if c.resource().GracePeriod == nil {
		return 0
	}
	period := c.resource().GracePeriod(obj)
	switch {
	case period <= 0 || requested == nil:
		return max(period, 0)
	case *requested < 0:
		return 1 // the API server's reading of a negative period
	}
	return *requested
}

func (c *Collection[T]) remove(namespace, name string, preconditions metav1.Preconditions) (result T, err error) {
	return c.storage.Write(c.resource().Key(namespace, name), func(stored T, found bool) (d Decision[T], err error) {
		err = c.there(found, name)
		if err == nil {
			err = c.checkPreconditions(stored, preconditions)
		}
		if err != nil {
			return d, err
		}
		return Decision[T]{Remove, object.Copy(stored)}, nil
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
