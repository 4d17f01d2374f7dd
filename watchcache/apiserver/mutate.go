package apiserver

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/internal/apierror"
	"github.com/tributary-go/tributary/watchcache/internal/object"
)

// serveCreate answers POST.
func (e *resourceEndpoint[T]) serveCreate(c call) error {
	obj, err := e.readObject(c)
	if err != nil {
		return err
	}
	created, err := e.collection.Create(obj)
	if err != nil {
		return err
	}
	return e.respond(c, http.StatusCreated, created)
}

// serveUpdate answers PUT, of the object or of its status.
func (e *resourceEndpoint[T]) serveUpdate(c call) error {
	obj, err := e.readObject(c)
	if err != nil {
		return err
	}
	if obj.GetName() == "" {
		obj.SetName(c.target.Name)
	}
	if obj.GetName() != c.target.Name {
		return apierror.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), c.target.Name)
	}
	updated, err := e.write(c, obj)
	if err != nil {
		return err
	}
	return e.respond(c, http.StatusOK, updated)
}

// write updates what the target names.
func (e *resourceEndpoint[T]) write(c call, obj T) (T, error) {
	if c.target.Subresource == object.Status.Name() {
		return e.writer(c).UpdateStatus(obj)
	}
	return e.writer(c).Update(obj)
}

// serveDelete answers DELETE of one object: with the object where its kind has graceful deletion or
// where it stays, with a Status otherwise.
func (e *resourceEndpoint[T]) serveDelete(c call) error {
	options, err := readDeleteOptions(c)
	if err != nil {
		return err
	}
	deleted, err := e.collection.Delete(c.target.Namespace, c.target.Name, options)
	if err != nil {
		return err
	}
	_, err = e.collection.Get(c.target.Namespace, c.target.Name)
	if !apierrors.IsNotFound(err) || e.cache.Resource().GracePeriod != nil {
		return e.respond(c, http.StatusOK, deleted)
	}
	respondStatus(c, c.format, &metav1.Status{
		TypeMeta: typeMeta("Status", "v1"), Status: metav1.StatusSuccess, Code: http.StatusOK,
		Details: &metav1.StatusDetails{
			Name: deleted.GetName(), Group: e.cache.Resource().Group, Kind: e.cache.Resource().Plural, UID: deleted.GetUID(),
		},
	})
	return nil
}

// serveDeleteCollection answers DELETE of all objects that are selected, with the list of them.
func (e *resourceEndpoint[T]) serveDeleteCollection(c call) error {
	options, err := readDeleteOptions(c)
	if err != nil {
		return err
	}
	r, err := readRequest(c)
	if err != nil {
		return err
	}
	selected := watchcache.Request{Namespace: r.Namespace}
	selected.LabelSelector, selected.FieldSelector = r.LabelSelector, r.FieldSelector
	present, err := e.cache.Page(c.request.Context(), selected)
	if err != nil {
		return err
	}
	var deleted []T
	for _, obj := range present.Objects {
		last, err := e.collection.Delete(obj.GetNamespace(), obj.GetName(), options)
		if apierrors.IsNotFound(err) {
			continue // somebody else was faster
		}
		if err != nil {
			return err
		}
		deleted = append(deleted, last)
	}
	return e.respondList(c, watchcache.Page[T]{Objects: deleted, Meta: metav1.ListMeta{ResourceVersion: e.cache.ResourceVersion()}})
}
