package crd

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/tributary-go/tributary/server/collection"
)

// rules are those of a structural schema for the objects. They are read-only once they are made.
type rules struct {
	schema    *schema.Structural
	validator validation.SchemaValidator
	status    validation.SchemaValidator // of the status alone; nil if that is not written apart
	cel       *cel.Validator             // nil: there are no rules in CEL
	scale     *collection.Scale
}

func newRules(v version) (made collection.Rules[*document], err error) {
	var given apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema, &given, nil); err != nil {
		return made, err
	}
	structural, err := schema.NewStructural(given.OpenAPIV3Schema)
	if err != nil {
		return made, fmt.Errorf("version %s: the schema is not structural: %w", v.Name, err)
	}
	var scale *collection.Scale
	if s := v.Subresources; s != nil && s.Scale != nil {
		scale = scaleAt(*s.Scale)
	}
	own := &rules{schema: structural.DeepCopy(), scale: scale}
	if err := defaulting.PruneDefaults(own.schema); err != nil {
		return made, fmt.Errorf("version %s: defaults: %w", v.Name, err)
	}
	if own.validator, _, err = validation.NewSchemaValidator(given.OpenAPIV3Schema); err != nil {
		return made, fmt.Errorf("version %s: %w", v.Name, err)
	}
	if status, ok := given.OpenAPIV3Schema.Properties["status"]; ok && v.Subresources != nil && v.Subresources.Status != nil {
		if own.status, _, err = validation.NewSchemaValidator(&status); err != nil {
			return made, fmt.Errorf("version %s: %w", v.Name, err)
		}
	}
	own.cel = cel.NewValidator(own.schema, true, celconfig.PerCallLimit)
	return collection.Rules[*document]{
		Prune: own.prune, Default: own.fill, Validate: own.validate,
		PlainStatus: v.Subresources == nil || v.Subresources.Status == nil, Scale: scale,
	}, nil
}

// prune drops fields that the schema does not have, and nulls that it does not allow.
func (r *rules) prune(obj *document) (dropped []string, err error) {
	track := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	dropped = pruning.PruneWithOptions(obj.Object, r.schema, true, track)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, r.schema)
	fault, embedded := objectmeta.CoerceWithOptions(nil, obj.Object, r.schema, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if fault != nil {
		return nil, fault
	}
	return append(dropped, embedded...), nil
}

func (r *rules) fill(obj *document) { defaulting.Default(obj.Object, r.schema) }

func (r *rules) validate(obj, stored *document) (errs field.ErrorList) {
	var was map[string]any
	var ratchets []cel.Option
	if stored == nil {
		errs = validation.ValidateCustomResource(nil, obj.Object, r.validator)
	} else {
		was = stored.Object
		correlated := common.NewCorrelatedObject(obj.Object, was, &model.Structural{Structural: r.schema})
		ratchets = append(ratchets, cel.WithRatcheting(correlated))
		status, has := obj.Object["status"]
		switch {
		case r.status != nil && has && sameButStatus(obj.Object, was):
			errs = validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, was["status"], r.status,
				validation.WithRatcheting(correlated.Key("status")))
		default:
			errs = validation.ValidateCustomResourceUpdate(nil, obj.Object, was, r.validator, validation.WithRatcheting(correlated))
		}
	}
	errs = append(errs, r.validateScale(obj)...)
	errs = append(errs, objectmeta.Validate(context.Background(), nil, obj.Object, r.schema, false)...)
	// Lists that were taken once are not judged again.
	if stored == nil || len(listtype.ValidateListSetsAndMaps(nil, r.schema, was)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, r.schema, obj.Object)...)
	}
	switch {
	case r.cel == nil:
	case blocks(errs):
		errs = append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the object was "+
			"invalid; correct the existing errors to complete validation"))
	default:
		var previous any // an untyped nil in a create
		if stored != nil {
			previous = was
		}
		broken, _ := r.cel.Validate(context.Background(), nil, r.schema, obj.Object, previous, celconfig.RuntimeCELCostBudget, ratchets...)
		errs = append(errs, broken...)
	}
	return errs
}

// sameButStatus reports whether nothing but the status and the metadata has changed, as in a write
// of the status.
func sameButStatus(is, was map[string]any) bool {
	is, was = maps.Clone(is), maps.Clone(was)
	for _, key := range []string{"status", "metadata"} {
		delete(is, key)
		delete(was, key)
	}
	return apiequality.Semantic.DeepEqual(is, was)
}

// blocks reports whether an object is too broken for rules in CEL.
func blocks(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

// dotted is a path as a definition has it, and as the API server's errors name it.
func dotted(path []string) *field.Path { return field.NewPath("." + strings.Join(path, ".")) }

// validateScale: replicas are a number that fits, whatever the schema says.
func (r *rules) validateScale(obj *document) (errs field.ErrorList) {
	if r.scale == nil {
		return nil
	}
	for _, path := range [][]string{r.scale.SpecReplicas, r.scale.StatusReplicas} {
		at := dotted(path)
		switch replicas, _, err := unstructured.NestedInt64(obj.Object, path...); {
		case err != nil:
			errs = append(errs, field.Invalid(at, replicas, err.Error()))
		case replicas < 0:
			errs = append(errs, field.Invalid(at, replicas, "should be a non-negative integer"))
		case replicas > math.MaxInt32:
			errs = append(errs, field.Invalid(at, replicas, fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)))
		}
	}
	if len(r.scale.Selector) > 0 {
		if selector, _, err := unstructured.NestedString(obj.Object, r.scale.Selector...); err != nil {
			errs = append(errs, field.Invalid(dotted(r.scale.Selector), selector, err.Error()))
		}
	}
	return errs
}
