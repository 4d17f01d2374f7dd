package crd

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/util"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
)

type (
	document = unstructured.Unstructured
	version  = apiextensionsv1.CustomResourceDefinitionVersion
)

// Resource describes the resource that a definition defines, in its stored version. The definition
// must be valid; [Load] sees to it. Errors: a version that is stored but not served, since nothing
// is converted; a schema that is not structural.
func Resource(definition *apiextensionsv1.CustomResourceDefinition) (r apiserver.Resource[*document], err error) {
	d := completed(definition)
	v, err := stored(d)
	if err == nil && !v.Served {
		err = fmt.Errorf("the version %s is stored and not served: nothing is converted", v.Name)
	}
	if err == nil {
		r, err = describe(d, v)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", d.Name, err)
	}
	return r, nil
}

// stored is the version in which objects are stored.
func stored(d *apiextensionsv1.CustomResourceDefinition) (v version, err error) {
	i := slices.IndexFunc(d.Spec.Versions, func(v version) bool { return v.Storage })
	if i < 0 {
		return v, errNoStorage
	}
	return d.Spec.Versions[i], nil
}

func describe(d *apiextensionsv1.CustomResourceDefinition, v version) (r apiserver.Resource[*document], err error) {
	names := d.Spec.Names
	r.Kind = watchcache.Kind[*document]{
		Group: d.Spec.Group, Version: v.Name, Plural: names.Plural, Kind: names.Kind,
		ClusterScoped: d.Spec.Scope == apiextensionsv1.ClusterScoped,
	}
	r.View = apiserver.View[*document]{Singular: names.Singular, ShortNames: names.ShortNames, Categories: names.Categories}
	if r.Kind.Fields, err = fields(v); err != nil {
		return r, err
	}
	if r.View.Columns, err = columns(v); err != nil {
		return r, err
	}
	if r.Rules, err = newRules(v); err != nil {
		return r, err
	}
	published, err := builder.BuildOpenAPIV3(d, v.Name, builder.Options{IncludeSelectableFields: true})
	if err != nil {
		return r, fmt.Errorf("its OpenAPI: %w", err)
	}
	models := published.Components.Schemas
	r.View.Schema = models[util.ToRESTFriendlyName(r.Kind.Group+"/"+r.Kind.Version+"."+r.Kind.Kind)]
	r.Rules.Types, err = managedfields.NewTypeConverter(models, d.Spec.PreserveUnknownFields)
	return r, err
}

func scaleAt(s apiextensionsv1.CustomResourceSubresourceScale) *collection.Scale {
	path := func(expression string) []string { return strings.Split(strings.TrimPrefix(expression, "."), ".") }
	found := &collection.Scale{SpecReplicas: path(s.SpecReplicasPath), StatusReplicas: path(s.StatusReplicasPath)}
	if s.LabelSelectorPath != nil {
		found.Selector = path(*s.LabelSelectorPath)
	}
	return found
}
