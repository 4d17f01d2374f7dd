package watchcache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/store"
)

// Collection is the origin of a collection: it is written here, by Go code and over HTTP, under the API server's
// rules, and versioned by its [Server]. [Serve] makes one.
//
// Objects are copied on the way in; what is returned is stored, shared and read-only. Errors are API status
// errors. All methods are safe for concurrent use.
type Collection[T store.Object] struct {
	cache     *Cache[T]
	revision  *revision
	ownership *ownership[T]
}

// Snapshot is the content now. It is O(1).
func (c *Collection[T]) Snapshot() store.Snapshot[T] { return c.cache.Snapshot() }

// Watch follows the collection; see [Cache.Watch].
func (c *Collection[T]) Watch(ctx context.Context, options WatchOptions) iter.Seq2[Event[T], error] {
	return c.cache.Watch(ctx, options)
}

// Compact forgets the history, as a compaction and a restart of a real server do: see [Cache.Compact].
func (c *Collection[T]) Compact() { c.cache.Compact() }

// Expire makes every version that anybody has seen too old: the server moves on by one version, as with a write to
// another collection, and forgets what was before. All watches under way end with a 410.
func (c *Collection[T]) Expire() {
	_ = c.revision.write(func(string) (bool, error) { // it has no error of its own
		c.cache.expire(c.revision.current.Load() + 1)
		return true, nil
	})
}

// SendBookmarks makes every watcher that wants bookmarks send one soon; see [Cache.SendBookmarks].
func (c *Collection[T]) SendBookmarks() { c.cache.SendBookmarks() }

// Get returns an object, or NotFound. The namespace of cluster-scoped objects is not looked at.
func (c *Collection[T]) Get(namespace, name string) (T, error) {
	obj, ok := c.Snapshot().Get(c.resource().key(namespace, name))
	if !ok {
		return obj, apierrors.NewNotFound(c.resource().groupResource(), name)
	}
	return obj, nil
}

// Create stores a new object under a new UID, creation time and resource version, and generation 1 if it has a
// spec. A name is made from metadata.generateName where there is none. The status is stored as given. Errors:
// AlreadyExists; Invalid without a name, or with a namespace too many or too few; BadRequest with a resource version.
func (c *Collection[T]) Create(obj T) (created T, err error) {
	next := copyOf(obj)
	c.resource().setKind(next)
	if next.GetResourceVersion() != "" {
		return created, badRequest("resourceVersion should not be set on objects to be created")
	}
	if next.GetName() == "" && next.GetGenerateName() != "" {
		next.SetName(next.GetGenerateName() + rand.String(generatedLength))
	}
	if err := c.validate(next); err != nil {
		return created, err
	}
	next.SetUID(uuid.NewUUID())
	next.SetCreationTimestamp(now())
	next.SetDeletionTimestamp(nil)
	next.SetDeletionGracePeriodSeconds(nil)
	if _, ok := spec.of(next); ok {
		next.SetGeneration(1)
	}
	err = c.revision.write(func(version string) (bool, error) {
		if _, ok := c.Snapshot().Get(store.KeyOf(next)); ok {
			return false, apierrors.NewAlreadyExists(c.resource().groupResource(), next.GetName())
		}
		next.SetResourceVersion(version)
		created = next
		return true, c.cache.Add(next)
	})
	return created, err
}

// generatedLength is how many characters a generated name gets.
const generatedLength = 5

// Update replaces an object but for its status, which stays (see [Collection.UpdateStatus]), as do UID, creation
// and deletion time. The generation grows when the spec changes. Where nothing changes, nothing is written. An
// object that is being deleted goes when its last finalizer is dropped. Errors: NotFound; Conflict when obj has
// a resource version or a UID that is not the stored one.
func (c *Collection[T]) Update(obj T) (T, error) { return c.update(obj, unknownManager) }

func (c *Collection[T]) update(obj T, manager string) (T, error) {
	return c.replace(obj, func(stored, next T) T {
		status.move(next, stored)
		keepSystemFields(stored, next)
		return c.ownership.track(stored, next, manager, c.ownership.whole)
	})
}

// UpdateStatus replaces the status of an object, and nothing else. Errors are those of [Collection.Update].
func (c *Collection[T]) UpdateStatus(obj T) (T, error) { return c.updateStatus(obj, unknownManager) }

func (c *Collection[T]) updateStatus(obj T, manager string) (T, error) {
	return c.replace(obj, func(stored, next T) T {
		whole := copyOf(stored)
		status.move(whole, next)
		return c.ownership.track(stored, whole, manager, c.ownership.status)
	})
}

// put replaces an object but for its status, and takes its managed fields as they are.
func (c *Collection[T]) put(obj T) (T, error) {
	return c.replace(obj, func(stored, next T) T {
		status.move(next, stored)
		return next
	})
}

// replace writes what merge makes of the stored object and a copy of obj.
func (c *Collection[T]) replace(obj T, merge func(stored, next T) T) (result T, err error) {
	given := copyOf(obj)
	c.resource().setKind(given)
	if err := c.validate(given); err != nil {
		return result, err
	}
	err = c.revision.write(func(version string) (bool, error) {
		stored, err := c.Get(given.GetNamespace(), given.GetName())
		if err == nil {
			err = c.checkUpdate(stored, given)
		}
		if err != nil {
			return false, err
		}
		next := merge(stored, given)
		c.resource().setKind(next)
		keepSystemFields(stored, next)
		if apiequality.Semantic.DeepEqual(stored, next) {
			result = stored
			return false, nil
		}
		if !spec.same(stored, next) {
			next.SetGeneration(stored.GetGeneration() + 1)
		}
		next.SetResourceVersion(version)
		result = next
		if released(stored, next) {
			return true, c.cache.Delete(next)
		}
		return true, c.cache.Update(next)
	})
	return result, err
}

func (c *Collection[T]) checkUpdate(stored, obj T) error {
	if uid := obj.GetUID(); uid != "" && uid != stored.GetUID() {
		return c.conflict(obj.GetName(), fmt.Errorf("the UID %s in the update is not the stored one, %s: the object "+
			"was deleted and created again", uid, stored.GetUID()))
	}
	if version := obj.GetResourceVersion(); version != "" && version != stored.GetResourceVersion() {
		return c.conflict(obj.GetName(), errors.New("the object has been modified; please apply your changes to "+
			"the latest version and try again"))
	}
	return nil
}

// keepSystemFields copies what only the server writes.
func keepSystemFields[T store.Object](stored, next T) {
	next.SetUID(stored.GetUID())
	next.SetCreationTimestamp(stored.GetCreationTimestamp())
	next.SetDeletionTimestamp(stored.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(stored.GetDeletionGracePeriodSeconds())
	next.SetGeneration(stored.GetGeneration())
	next.SetResourceVersion(stored.GetResourceVersion())
}

// released reports whether an update drops the last finalizer of an object that waits for nothing else.
func released[T store.Object](stored, next T) bool {
	grace := stored.GetDeletionGracePeriodSeconds()
	return stored.GetDeletionTimestamp() != nil && (grace == nil || *grace == 0) &&
		len(stored.GetFinalizers()) > 0 && len(next.GetFinalizers()) == 0
}

func (c *Collection[T]) validate(obj T) error {
	var errs field.ErrorList
	meta := field.NewPath("metadata")
	name, namespace := obj.GetName(), obj.GetNamespace()
	if name == "" {
		errs = append(errs, field.Required(meta.Child("name"), "name or generateName is required"))
	}
	for _, problem := range content.IsPathSegmentName(name) {
		errs = append(errs, field.Invalid(meta.Child("name"), name, problem))
	}
	switch {
	case c.resource().ClusterScoped && namespace != "":
		errs = append(errs, field.Forbidden(meta.Child("namespace"), "not allowed on this type"))
	case !c.resource().ClusterScoped && namespace == "":
		errs = append(errs, field.Required(meta.Child("namespace"), ""))
	}
	for _, problem := range content.IsPathSegmentName(namespace) {
		errs = append(errs, field.Invalid(meta.Child("namespace"), namespace, problem))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(c.resource().groupVersionKind().GroupKind(), name, errs)
	}
	return nil
}

func (c *Collection[T]) conflict(name string, cause error) error {
	return apierrors.NewConflict(c.resource().groupResource(), name, cause)
}

func (c *Collection[T]) resource() Resource[T] { return c.cache.resource }

// now has the precision of the wire.
func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }
