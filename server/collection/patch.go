package collection

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	strictjson "sigs.k8s.io/json"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/object"
)

// The limits of a JSON patch, as in the API server.
const (
	maxPatchOperations = 10000
	maxPatchCopies     = 3 << 20 // bytes that copy operations may add up to
)

// Patch makes a JSON, merge or strategic merge patch on an object, or on its status if subresource
// is "status". It is made on the newest state, whatever other writers do meanwhile; a resource
// version in the patch is a precondition. [Collection.Apply] is for server-side apply. Errors:
// those of [Collection.Update]; BadRequest for a patch that cannot be read, Invalid for one that
// does not fit, 413 for one of too many operations, 415 for another kind of patch.
func (c *Collection[T]) Patch(namespace, name string, kind types.PatchType, body []byte, subresource string) (T, error) {
	if err := object.CheckDepth(body); err != nil {
		return c.Kind().Empty(), err
	}
	merge := c.whole
	if subresource == object.Status.Name() {
		merge = c.statusOnly
	}
	return c.write(namespace, name, func(stored T, found bool) (d Decision[T], err error) {
		if err := c.there(found, name); err != nil {
			return d, err
		}
		obj, err := c.patched(stored, kind, body)
		if err == nil {
			err = c.Kind().Place(namespace, obj)
		}
		if err == nil && obj.GetName() != name {
			err = apierror.OtherName(obj.GetName(), name)
		}
		if err != nil {
			return d, err
		}
		return c.replaced(stored, obj, patch, merge)
	})
}

// patched is a stored object with a patch made on it.
func (c *Collection[T]) patched(stored T, kind types.PatchType, body []byte) (T, error) {
	obj := c.Kind().Empty()
	before, err := json.Marshal(c.ownership.named(stored))
	if err != nil {
		return obj, err
	}
	after, objections, err := c.applyPatch(kind, before, body, stored)
	if err == nil {
		err = object.CheckDepth(after) // patches add up
	}
	if err != nil {
		return obj, err
	}
	more, err := object.Decode(after, obj, c.objects())
	if err != nil {
		return obj, unfit(err.Error())
	}
	if err := c.checkKind(obj, kind); err != nil {
		return obj, err
	}
	objections = append(objections, more...)
	if prune := c.rules.Prune; prune != nil {
		dropped, err := prune(obj)
		if err != nil {
			return obj, unfit(err.Error())
		}
		objections = append(objections, Unknown(dropped)...)
	}
	return obj, c.object(objections, func(all ...error) error { return unfit(runtime.NewStrictDecodingError(all).Error()) })
}

// checkKind: no patch changes the kind. A strategic merge patch of a Go type is not asked.
func (c *Collection[T]) checkKind(obj T, by types.PatchType) error {
	is, must := obj.GetObjectKind().GroupVersionKind(), c.Kind().GroupVersionKind()
	_, isDocument := any(obj).(runtime.Unstructured)
	switch {
	case is == must || by == types.StrategicMergePatchType:
		return nil
	case isDocument && is.Kind != must.Kind:
		return c.invalid(obj, field.ErrorList{field.Invalid(field.NewPath("kind"), is.Kind, "must be "+must.Kind)})
	}
	return unfit(fmt.Sprintf("the patch makes a %s of it", is))
}

// objects reports whether unknown fields and keys that are there twice matter.
func (c *Collection[T]) objects() bool {
	return c.options.FieldValidation == metav1.FieldValidationWarn || c.options.FieldValidation == metav1.FieldValidationStrict
}

// object warns of the objections of a strict reader, or refuses the object for them.
func (c *Collection[T]) object(objections []error, refusal func(...error) error) error {
	if c.options.FieldValidation == metav1.FieldValidationStrict && len(objections) > 0 {
		return refusal(objections...)
	}
	if c.objects() {
		for _, objection := range objections {
			c.warn(objection.Error())
		}
	}
	return nil
}

// Unknown are the objections to fields that a kind does not have.
func Unknown(paths []string) (objections []error) {
	for _, path := range paths {
		objections = append(objections, fmt.Errorf("unknown field %q", path))
	}
	return objections
}

// unfit is the 422 for a patch that does not fit the object. It does not quote the patch.
func unfit(why string) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), field.OmitValueType{}, why),
	})
}

// unprocessable is the 422 for a patch that cannot be made.
func unprocessable(err error) error {
	return apierror.Refused(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "the patch cannot be made: "+err.Error())
}

func (c *Collection[T]) applyPatch(kind types.PatchType, before, body []byte, stored runtime.Object) (after []byte, objections []error, err error) {
	_, isDocument := stored.(runtime.Unstructured)
	switch {
	case kind == types.JSONPatchType:
		return c.applyJSONPatch(before, body)
	case kind == types.MergePatchType:
		var members map[string]any
		if objections, err = c.readPatch(body, &members); err != nil {
			return nil, nil, err
		}
		if members == nil { // by RFC 7386 it would leave nothing of the object
			return nil, nil, apierror.BadRequest("the patch cannot be read: it is null")
		}
		after, err = jsonpatch.MergePatch(before, body)
	case kind == types.StrategicMergePatchType && !isDocument:
		if objections, err = c.readPatch(body, &map[string]any{}); err != nil {
			return nil, nil, err
		}
		after, err = strategicpatch.StrategicMergePatch(before, body, stored)
	default:
		return nil, nil, apierror.UnsupportedMedia(string(types.JSONPatchType), string(types.MergePatchType),
			string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType))
	}
	switch {
	case err == nil:
		return after, objections, nil
	case errors.Is(err, mergepatch.ErrNoListOfLists), errors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys):
		return nil, nil, unprocessable(err)
	case isDirective(err):
		return nil, nil, apierror.BadRequest("the patch cannot be read: %v", err)
	}
	return nil, nil, apierror.Unclassified("the patch cannot be made as %s", kind)
}

// isDirective reports whether a directive of a strategic merge patch has a wrong form.
func isDirective(err error) bool {
	for _, known := range []error{
		mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat,
		jsonpatch.ErrBadJSONPatch, jsonpatch.ErrBadJSONDoc,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// readPatch checks the form of a patch.
func (c *Collection[T]) readPatch(body []byte, into any) (objections []error, err error) {
	objections, err = strictjson.UnmarshalStrict(body, into)
	if err != nil {
		return nil, apierror.BadRequest("the patch cannot be read: it is not JSON of the right form")
	}
	return objections, nil
}

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	From  string `json:"from"`
	Value any    `json:"value"`
}

func (c *Collection[T]) applyJSONPatch(before, body []byte) (after []byte, objections []error, err error) {
	if c.objects() {
		if objections, err = c.readPatch(body, &[]operation{}); err != nil {
			return nil, nil, err
		}
		for i, objection := range objections {
			objections[i] = fmt.Errorf("json patch %w", objection)
		}
	}
	var operations jsonpatch.Patch // an operation that lacks a field fails when it is made
	if err := json.Unmarshal(body, &operations); err != nil {
		return nil, nil, apierror.BadRequest("the patch cannot be read: it is not a list of operations")
	}
	if len(operations) > maxPatchOperations {
		return nil, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch "+
			"is %d, got %d", maxPatchOperations, len(operations)))
	}
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxPatchCopies
	after, err = operations.ApplyWithOptions(before, options)
	if err != nil {
		return nil, nil, unprocessable(err)
	}
	return after, objections, nil
}
