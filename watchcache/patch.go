package watchcache

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

const (
	// patchAttempts is how often a patch is made again when the object changes under it, as in the API server.
	patchAttempts = 5
	// maxPatchOperations bounds a JSON patch, as in the API server.
	maxPatchOperations = 10000
)

// servePatch answers PATCH: a server-side apply, or JSON, merge and strategic merge patches. A patch that names no resource
// version is made on the latest state.
func (e *resourceEndpoint[T]) servePatch(c call) error {
	patch, err := readBody(c)
	if err != nil {
		return err
	}
	if types.PatchType(bodyType(c)) == types.ApplyYAMLPatchType && c.target.Subresource == "" {
		return e.serveApply(c, patch)
	}
	for attempt := 1; ; attempt++ {
		stored, err := e.collection.Get(c.target.Namespace, c.target.Name)
		if err != nil {
			return err
		}
		obj, err := e.patched(c, stored, patch)
		if err != nil {
			return err
		}
		updated, err := e.write(c, obj)
		// A version of the patch's own is a precondition: its conflict is final.
		again := apierrors.IsConflict(err) && obj.GetResourceVersion() == stored.GetResourceVersion()
		if err != nil && (!again || attempt == patchAttempts) {
			return err
		}
		if err == nil {
			return e.respond(c, http.StatusOK, updated)
		}
	}
}

// patched is a stored object with a patch made on it.
func (e *resourceEndpoint[T]) patched(c call, stored T, patch []byte) (T, error) {
	obj := newObject[T]()
	before, err := e.codec.object(format{}, stored)
	if err != nil {
		return obj, err
	}
	after, err := applyPatch(types.PatchType(bodyType(c)), before, patch, stored)
	if err != nil {
		return obj, err
	}
	if err := utiljson.Unmarshal(after, obj); err != nil {
		return obj, badRequest("the patched object does not fit its type: a field has a value of the wrong form")
	}
	if obj.GetName() != stored.GetName() {
		return obj, badRequest("metadata.name cannot be patched")
	}
	return obj, e.place(c, obj)
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
		return nil, unsupportedMedia(strings.Join([]string{
			string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType),
			string(types.ApplyYAMLPatchType),
		}, ", "))
	}
	if err != nil {
		return nil, badRequest("the patch cannot be read as %s, or does not fit the object", kind)
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
