package crd

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
)

type definition = apiextensionsv1.CustomResourceDefinition

// Definitions describes the resource of the definitions themselves, with the API server's rules for
// them. A server that offers it must act on each write, at first by [Accept]. A
// definition that a client deletes stays until its cleanup finalizer is taken away.
func Definitions() apiserver.Resource[*definition] {
	return apiserver.Resource[*definition]{
		Kind: watchcache.Kind[*definition]{
			Group: apiextensionsv1.GroupName, Version: apiextensionsv1.SchemeGroupVersion.Version,
			Plural: "customresourcedefinitions", Kind: kind, ClusterScoped: true,
		},
		View: apiserver.View[*definition]{
			ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
			Columns: []apiserver.Column[*definition]{{
				Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
				Value: func(d *definition) any { return d.CreationTimestamp.UTC().Format(time.RFC3339) },
			}},
		},
		Rules: collection.Rules[*definition]{
			BuiltIn: true, Generation: collection.CountSpec, PlainFinalizers: true,
			Default:  apiextensionsv1.SetObjectDefaults_CustomResourceDefinition,
			Complete: func(d, _ *definition) { noteStoredVersion(d) },
			Validate: validateDefinition,
			Delete:   markTerminating,
			Types:    definitionTypes(),
		},
	}
}

// noteStoredVersion: etcd may have objects of this version from now on.
func noteStoredVersion(d *definition) {
	version, err := apihelpers.GetCRDStorageVersion(d)
	if err == nil && !apihelpers.IsStoredVersion(d, version) {
		d.Status.StoredVersions = append(slices.Clone(d.Status.StoredVersions), version)
	}
}

func validateDefinition(d, stored *definition) field.ErrorList {
	is, err := internal(d)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if stored == nil {
		return validation.ValidateCustomResourceDefinition(context.Background(), is)
	}
	was, err := internal(stored)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return validation.ValidateCustomResourceDefinitionUpdate(context.Background(), is, was)
}

// internal is the form that the API server's code checks.
func internal(d *definition) (*apiextensions.CustomResourceDefinition, error) {
	converted := &apiextensions.CustomResourceDefinition{}
	return converted, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(d.DeepCopy(), converted, nil)
}

// markTerminating begins the end of a definition: its objects go first.
func markTerminating(d *definition) {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	d.DeletionTimestamp = &now
	if !apihelpers.CRDHasFinalizer(d, apiextensionsv1.CustomResourceCleanupFinalizer) {
		d.Finalizers = append(slices.Clone(d.Finalizers), apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	SetCondition(d, apiextensionsv1.Terminating, true, "InstanceDeletionPending",
		"CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")
}

// SetCondition notes a condition in the status of a definition, under the present time if it did
// not hold before, or held.
func SetCondition(d *apiextensionsv1.CustomResourceDefinition, condition apiextensionsv1.CustomResourceDefinitionConditionType,
	holds bool, reason, message string,
) {
	status := apiextensionsv1.ConditionFalse
	if holds {
		status = apiextensionsv1.ConditionTrue
	}
	apihelpers.SetCRDCondition(d, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: condition, Status: status, Reason: reason, Message: message,
	})
}

// definitionTypes are the types of the fields of a definition, as the API server publishes them.
var definitionTypes = sync.OnceValue(func() managedfields.TypeConverter {
	models := map[string]*spec.Schema{}
	refer := func(name string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + name) }
	for name, d := range openapi.GetOpenAPIDefinitions(refer) {
		models[name] = &d.Schema
	}
	models[definition{}.OpenAPIModelName()].AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
		"group": apiextensionsv1.GroupName, "version": apiextensionsv1.SchemeGroupVersion.Version, "kind": kind,
	}})
	types, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		panic(err) // the models are compiled in: TestDefinitions makes them
	}
	return types
})
