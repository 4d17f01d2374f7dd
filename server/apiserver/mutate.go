package apiserver

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/server/watchcache"
)

// serveCreate answers POST.
func (e *resourceEndpoint[T]) serveCreate(c call) error {
	o, err := createOptions(c)
	if err != nil {
		return err
	}
	obj, err := e.readObject(c, o)
	if err == nil {
		err = c.checkNamespace()
	}
	if err != nil {
		return err
	}
	created, err := e.collection.With(o).Create(obj)
	if err == nil {
		err = e.checkCreated(c, o, created)
	}
	if err != nil {
		return err
	}
	return e.respond(c, http.StatusCreated, created)
}

// checkCreated is the check of the namespace of an object that is stored.
func (e *resourceEndpoint[T]) checkCreated(c call, o collection.WriteOptions, created T) error {
	return c.checkNamespaceAgain(o, func() error {
		_, err := e.collection.Remove(created.GetNamespace(), created.GetName())
		return err
	})
}

// serveUpdate answers PUT, of the object or of its status.
func (e *resourceEndpoint[T]) serveUpdate(c call) error {
	o, err := updateOptions(c)
	if err != nil {
		return err
	}
	obj, err := e.readObject(c, o)
	if err != nil {
		return err
	}
	if obj.GetName() != c.target.Name {
		return apierror.OtherName(obj.GetName(), c.target.Name)
	}
	write := e.collection.With(o).Update
	if c.target.Subresource == object.Status.Name() {
		write = e.collection.With(o).UpdateStatus
	}
	updated, err := write(obj)
	if err != nil {
		return err
	}
	return e.respond(c, http.StatusOK, updated)
}

// deleter is the collection for a deletion.
func (e *resourceEndpoint[T]) deleter(o metav1.DeleteOptions) *collection.Collection[T] {
	return e.collection.With(collection.WriteOptions{DryRun: len(o.DryRun) > 0})
}

// serveDelete answers DELETE of one object: with the object where it stays or its kind says so,
// with a Status otherwise.
func (e *resourceEndpoint[T]) serveDelete(c call) error {
	options, err := readDeleteOptions(c)
	if err == nil {
		err = c.checkDeletion()
	}
	if err != nil {
		return err
	}
	deleted, err := e.deleter(options).Delete(c.target.Namespace, c.target.Name, options)
	if err != nil {
		return err
	}
	stays := deleted.GetDeletionTimestamp() != nil && e.collection.Held(deleted)
	if stays || e.collection.Rules().ReturnDeleted {
		return e.respond(c, deleteCode(options, stays), deleted)
	}
	return e.respondDeleted(c, deleted)
}

// respondDeleted answers that an object has gone.
func (e *resourceEndpoint[T]) respondDeleted(c call, deleted T) error {
	return respondSuccess(c, http.StatusOK, &metav1.StatusDetails{
		Name: deleted.GetName(), Group: e.codec.served.Group, Kind: e.cache.Kind().Plural, UID: deleted.GetUID(),
	})
}

// serveDeleteCollection answers DELETE of all objects that are selected, with the list of them as
// they were.
func (e *resourceEndpoint[T]) serveDeleteCollection(c call) error {
	options, err := readDeleteOptions(c)
	if err != nil {
		return err
	}
	r, err := readRequest(c)
	if err != nil {
		return err
	}
	r.Watch = false
	if p := options.Preconditions; p != nil && ptr.Deref(p.ResourceVersion, "") == r.ResourceVersion {
		p.ResourceVersion = nil // the query names the version of the list
	}
	present, err := e.cache.Page(c.request.Context(), r)
	if err != nil {
		return err
	}
	for _, obj := range present.Objects {
		_, err := e.deleter(options).Delete(obj.GetNamespace(), obj.GetName(), options)
		if err != nil && !apierrors.IsNotFound(err) { // another writer was faster
			return err
		}
	}
	return e.respondList(c, watchcache.Page[T]{Objects: present.Objects, Meta: present.Meta})
}
