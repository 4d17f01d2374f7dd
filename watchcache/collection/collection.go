package collection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/internal/apierror"
	"github.com/tributary-go/tributary/watchcache/internal/object"
)

// Collection is a collection that is written here, by Go code and over HTTP, under the API server's
// rules. [New] makes one, and apiserver.Serve one that clients can reach.
//
// Objects are copied on the way in. Returned objects are the stored ones: shared and read-only.
// Errors are API status errors. All methods are safe for concurrent use.
type Collection[T store.Object] struct {
	cache     *watchcache.Cache[T]
	storage   Storage[T]
	revision  *watchcache.Revision // nil if the storage counts
	ownership *ownership[T]
	manager   string // the name under which fields are owned
}

// New makes an empty collection, whose versions revision counts. It fails on an incomplete resource
// and on options out of range.
func New[T store.Object](resource watchcache.Resource[T], revision *watchcache.Revision, options ...watchcache.Option) (*Collection[T], error) {
	cache, err := watchcache.NewCache(resource, append(slices.Clone(options), watchcache.WithRevision(revision))...)
	if err != nil {
		return nil, err
	}
	c, err := On(cache, memory[T]{cache, revision})
	if err != nil {
		return nil, err
	}
	c.revision = revision
	return c, nil
}

// On is a collection whose objects are in a storage. Its readers have cache, which a reflector
// keeps equal to the storage, and which asks the storage whether it is fresh
// ([watchcache.WithUpstream]). It fails on a resource for which no owners of fields can be kept.
func On[T store.Object](cache *watchcache.Cache[T], storage Storage[T]) (*Collection[T], error) {
	owners, err := newOwnership(cache.Resource())
	if err != nil {
		return nil, err
	}
	return &Collection[T]{cache: cache, storage: storage, ownership: owners, manager: unknownManager}, nil
}

// WaitFresh returns once readers of the cache see every write that has returned: see
// [watchcache.Cache.WaitFresh]. It returns at once, unless the collection is [On] a storage.
func (c *Collection[T]) WaitFresh(ctx context.Context) error { return c.cache.WaitFresh(ctx) }

// As is the same collection for writes by a field manager (KEP-555). The empty name stands for an
// unknown manager.
func (c *Collection[T]) As(manager string) *Collection[T] {
	as := *c
	as.manager = cmp.Or(manager, unknownManager)
	return &as
}

// Cache is the copy that lists and watches read. It is for readers: write through the collection.
func (c *Collection[T]) Cache() *watchcache.Cache[T] { return c.cache }

// Snapshot is the content now. It is O(1).
func (c *Collection[T]) Snapshot() store.Snapshot[T] { return c.cache.Snapshot() }

// Watch follows the collection; see [watchcache.Cache.Watch].
func (c *Collection[T]) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[listwatch.Event[T], error] {
	return c.cache.Watch(ctx, options)
}

// OnChange has f told of every write; see [watchcache.Cache.OnChange].
func (c *Collection[T]) OnChange(f func(listwatch.Event[T])) { c.cache.OnChange(f) }

// Compact forgets the history, as a compaction and a restart of a real server do: see
// [watchcache.Cache.Compact].
func (c *Collection[T]) Compact() { c.cache.Compact() }

// Expire makes every version that anybody has seen too old: the server moves on by one version, as
// with a write to another collection, and forgets what was before. All watches under way end with a
// 410.
func (c *Collection[T]) Expire() {
	if c.revision == nil { // the storage counts
		c.cache.Expire(0)
		return
	}
	_ = c.revision.Write(func(string) (bool, error) { // it has no error of its own
		c.cache.Expire(c.revision.Current() + 1)
		return true, nil
	})
}

// SendBookmarks makes every watcher that wants bookmarks send one soon; see
// [watchcache.Cache.SendBookmarks].
func (c *Collection[T]) SendBookmarks() { c.cache.SendBookmarks() }

// Get returns an object, or NotFound. The namespace of cluster-scoped objects is not looked at.
func (c *Collection[T]) Get(namespace, name string) (T, error) {
	obj, found, err := c.storage.Read(c.resource().Key(namespace, name))
	if err == nil && !found {
		err = c.notFound(name)
	}
	return obj, err
}

// Create stores a new object under a new UID, creation time and resource version, and generation 1
// if it has a spec. A name is made from metadata.generateName where there is none. The status is
// stored as given. Errors: AlreadyExists; Invalid without a name, or with a namespace too many or
// too few; BadRequest with a resource version.
func (c *Collection[T]) Create(obj T) (created T, err error) {
	next := object.Copy(obj)
	c.resource().SetKind(next)
	if next.GetResourceVersion() != "" {
		return created, apierror.BadRequest("resourceVersion should not be set on objects to be created")
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
	if _, ok := object.Spec.Of(next); ok {
		next.SetGeneration(1)
	}
	return c.storage.Write(store.KeyOf(next), func(_ T, found bool) (Decision[T], error) {
		if found {
			return Decision[T]{}, apierrors.NewAlreadyExists(c.resource().GroupResource(), next.GetName())
		}
		return Decision[T]{Put, next}, nil
	})
}

// generatedLength is how many characters a generated name gets.
const generatedLength = 5

// Update replaces an object but for its status, which stays (see [Collection.UpdateStatus]), as do
// UID, creation and deletion time. The generation grows when the spec changes. Where nothing
// changes, nothing is written. An object that is being deleted goes when its last finalizer is
// dropped. Errors: NotFound; Conflict when obj has a resource version or a UID that is not the
// stored one.
func (c *Collection[T]) Update(obj T) (T, error) {
	return c.replace(obj, func(stored, next T) T {
		object.Status.Move(next, stored)
		keepSystemFields(stored, next)
		return c.ownership.track(stored, next, c.manager, c.ownership.whole)
	})
}

// UpdateStatus replaces the status of an object, and nothing else. Errors are those of
// [Collection.Update].
func (c *Collection[T]) UpdateStatus(obj T) (T, error) {
	return c.replace(obj, func(stored, next T) T {
		whole := object.Copy(stored)
		object.Status.Move(whole, next)
		return c.ownership.track(stored, whole, c.manager, c.ownership.status)
	})
}

// put replaces an object but for its status, and takes its managed fields as they are.
func (c *Collection[T]) put(obj T) (T, error) {
	return c.replace(obj, func(stored, next T) T {
		object.Status.Move(next, stored)
		return next
	})
}

// replace writes what merge makes of the stored object and a copy of obj.
func (c *Collection[T]) replace(obj T, merge func(stored, next T) T) (result T, err error) {
	given := object.Copy(obj)
	c.resource().SetKind(given)
	if err := c.validate(given); err != nil {
		return result, err
	}
	again := false
	return c.storage.Write(store.KeyOf(given), func(stored T, found bool) (d Decision[T], err error) {
		err = c.there(found, given.GetName())
		if err == nil {
			err = c.checkUpdate(stored, given)
		}
		if err != nil {
			return d, err
		}
		next := given
		if again { // merge has written into it
			next = object.Copy(obj)
			c.resource().SetKind(next)
		}
		again = true
		return c.updated(stored, merge(stored, next)), nil
	})
}

// updated decides what becomes of a stored object of which next is the new state.
func (c *Collection[T]) updated(stored, next T) Decision[T] {
	c.resource().SetKind(next)
	keepSystemFields(stored, next)
	if apiequality.Semantic.DeepEqual(stored, next) {
		return Decision[T]{Keep, stored}
	}
	if !object.Spec.Same(stored, next) {
		next.SetGeneration(stored.GetGeneration() + 1)
	}
	if released(stored, next) {
		return Decision[T]{Remove, next}
	}
	return Decision[T]{Put, next}
}

func (c *Collection[T]) there(found bool, name string) error {
	if found {
		return nil
	}
	return c.notFound(name)
}

func (c *Collection[T]) notFound(name string) error {
	return apierrors.NewNotFound(c.resource().GroupResource(), name)
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

// released reports whether an update drops the last finalizer of an object that waits for nothing
// else.
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
		return apierrors.NewInvalid(c.resource().GroupVersionKind().GroupKind(), name, errs)
	}
	return nil
}

func (c *Collection[T]) conflict(name string, cause error) error {
	return apierrors.NewConflict(c.resource().GroupResource(), name, cause)
}

func (c *Collection[T]) resource() watchcache.Resource[T] { return c.cache.Resource() }

// now has the precision of the wire.
func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }
