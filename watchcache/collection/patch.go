package collection

import (
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/tributary-go/tributary/watchcache/internal/apierror"
	"github.com/tributary-go/tributary/watchcache/internal/object"
)

const (
	// patchAttempts is how often a patch is made again when the object changes under it, as in the
	// API server.
	patchAttempts = 5
	// maxPatchOperations bounds a JSON patch, as in the API server.
	maxPatchOperations = 10000
)

// Patch makes a JSON, merge or strategic merge patch on an object, or on its status if subresource
// is "status". A patch that names no resource version is made on the latest state, again if that
// changes meanwhile. [Collection.Apply] is for server-side apply. Errors: those of
// [Collection.Update]; BadRequest for a patch that does not fit, 415 for another kind of patch.
func (c *Collection[T]) Patch(namespace, name string, kind types.PatchType, patch []byte, subresource string) (T, error) {
	for attempt := 1; ; attempt++ {
		stored, err := c.Get(namespace, name)
		if err != nil {
			return stored, err
		}
		obj, err := c.patched(stored, kind, patch)
		if err != nil {
			return obj, err
		}
		if err := c.resource().Place(namespace, obj); err != nil {
			return obj, err
		}
		write := c.Update
		if subresource == object.Status.Name() {
			write = c.UpdateStatus
		}
		updated, err := write(obj)
		// A version of the patch's own is a precondition: its conflict is final.
		again := apierrors.IsConflict(err) && obj.GetResourceVersion() == stored.GetResourceVersion()
		if !again || attempt == patchAttempts {
			return updated, err
		}
	}
}

// patched is a stored object with a patch made on it.
func (c *Collection[T]) patched(stored T, kind types.PatchType, patch []byte) (T, error) {
	obj := c.resource().Empty()
	before, err := json.Marshal(c.ownership.named(stored))
	if err != nil {
		return obj, err
	}
	after, err := applyPatch(kind, before, patch, stored)
	if err != nil {
		return obj, err
	}
	if err := utiljson.Unmarshal(after, obj); err != nil {
		return obj, apierror.BadRequest("the patched object does not fit its type: a field has a value of the wrong form")
	}
	if obj.GetName() != stored.GetName() {
		return obj, apierror.BadRequest("metadata.name cannot be patched")
	}
	return obj, nil
}

func applyPatch(kind types.PatchType, before, patch []byte, stored runtime.Object) (after []byte, err error) {
	_, isDocument := stored.(runtime.Unstructured)
	switch {
	case kind == types.JSONPatchType:
		after, err = applyJSONPatch(before, patch)
	case kind == types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, patch)
	case kind == types.StrategicMergePatchType && !isDocument:
		after, err = strategicpatch.StrategicMergePatch(before, patch, stored)
	default:
		return nil, apierror.UnsupportedMedia(string(types.JSONPatchType), string(types.MergePatchType),
			string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType))
	}
	if err != nil {
		return nil, apierror.BadRequest("the patch cannot be read as %s, or does not fit the object", kind)
	}
	return after, nil
}

func applyJSONPatch(before, patch []byte) ([]byte, error) {
	var operations jsonpatch.Patch
	if err := json.Unmarshal(patch, &operations); err != nil {
		return nil, err
	}
	if len(operations) > maxPatchOperations {
		return nil, errors.New("too many operations")
	}
	return operations.Apply(before)
}
