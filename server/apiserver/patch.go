package apiserver

import (
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/internal/apierror"
)

// servePatch answers PATCH: a server-side apply, or JSON, merge and strategic merge patches.
func (e *resourceEndpoint[T]) servePatch(c call) error {
	kind := types.PatchType(bodyType(c))
	if err := e.takes(kind); err != nil {
		return err
	}
	patch, err := readBody(c)
	if err != nil {
		return err
	}
	o, force, err := patchOptions(c, kind)
	if err != nil {
		return err
	}
	if kind == types.ApplyYAMLPatchType {
		return e.serveApply(c, o, patch, force)
	}
	patched, err := e.collection.With(o).Patch(c.target.Namespace, c.target.Name, kind, patch, c.target.Subresource)
	if err != nil {
		return err
	}
	return e.respond(c, http.StatusOK, patched)
}

// takes refuses a kind of patch that the resource does not take: 415.
func (e *resourceEndpoint[T]) takes(kind types.PatchType) error {
	known := []types.PatchType{types.JSONPatchType, types.MergePatchType, types.ApplyYAMLPatchType}
	if _, isDocument := e.sample().(runtime.Unstructured); !isDocument {
		known = append(known, types.StrategicMergePatchType)
	}
	if slices.Contains(known, kind) {
		return nil
	}
	var names []string
	for _, k := range known {
		names = append(names, string(k))
	}
	return apierror.UnsupportedMedia(names...)
}

// serveApply answers a server-side apply, of the object or of its status.
func (e *resourceEndpoint[T]) serveApply(c call, o collection.WriteOptions, configuration []byte, force bool) error {
	if c.target.Subresource != "" {
		applied, err := e.collection.With(o).ApplyStatus(c.target.Namespace, c.target.Name, configuration, force)
		if err != nil {
			return err
		}
		return e.respond(c, http.StatusOK, applied)
	}
	if found, _ := e.state(c.target.Namespace, c.target.Name); !found {
		if err := c.checkNamespace(); err != nil {
			return err
		}
	}
	applied, created, err := e.collection.With(o).Apply(c.target.Namespace, c.target.Name, configuration, force)
	if err == nil && created {
		err = e.checkCreated(c, o, applied)
	}
	if err != nil {
		return err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return e.respond(c, code, applied)
}
