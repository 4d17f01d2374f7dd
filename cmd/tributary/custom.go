package main

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/tributary-go/tributary/crd"
	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/listwatch"
)

type definition = apiextensionsv1.CustomResourceDefinition

// definitionsPath is where kube-apiserver keeps definitions.
const definitionsPath = "apiextensions.k8s.io/customresourcedefinitions"

// fromFile reads the custom resources of a file of definitions, in YAML or JSON.
func fromFile(path string) (all []resource, err error) {
	definitions, err := crd.Load(path)
	if err != nil {
		return nil, err
	}
	for _, d := range definitions {
		r, err := custom(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// stored reads the definitions that an etcd has, and which of them cannot be served. kube-apiserver
// stores them as v1beta1 still, so they are converted, by its own code.
func stored(ctx context.Context, client *clientv3.Client, prefix string) (all []resource, skipped []error, err error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	from := resource{path: definitionsPath}.prefix(prefix)
	for document, err := range etcd.New[unstructured.Unstructured](client, from).List(ctx, metav1.ListOptions{}).Items {
		if err != nil && !errors.As(err, new(*listwatch.DecodeError)) {
			return nil, nil, err
		}
		var r resource
		if err == nil {
			r, err = converted(scheme, document)
		}
		if err != nil {
			skipped = append(skipped, err)
			continue
		}
		all = append(all, r)
	}
	return all, skipped, nil
}

// converted describes the resource of a definition of any version.
func converted(scheme *runtime.Scheme, document *unstructured.Unstructured) (resource, error) {
	text, err := document.MarshalJSON()
	if err != nil {
		return resource{}, fmt.Errorf("%s: %w", document.GetName(), err)
	}
	obj, err := runtime.Decode(serializer.NewCodecFactory(scheme).UniversalDecoder(), text)
	if err == nil {
		obj, err = scheme.ConvertToVersion(obj, apiextensionsv1.SchemeGroupVersion)
	}
	if err != nil {
		return resource{}, fmt.Errorf("%s: it is no CustomResourceDefinition that is known: %w", document.GetName(), err)
	}
	d, ok := obj.(*definition)
	if !ok {
		return resource{}, fmt.Errorf("%s is a %T", document.GetName(), obj)
	}
	return custom(d)
}

// custom describes the resource that a definition defines, in its stored version.
func custom(d *definition) (resource, error) {
	r, err := crd.Resource(d)
	if err != nil {
		return resource{}, err
	}
	return resource{
		group: r.Group, version: r.Version, plural: r.Plural, kind: r.Kind,
		shortNames: r.ShortNames, categories: r.Categories, clusterScoped: r.ClusterScoped,
		path: r.Group + "/" + r.Plural,
		add: func(s *site, served resource) error {
			return add(s, served, etcd.New[unstructured.Unstructured](s.client, served.prefix(s.prefix)), r)
		},
	}, nil
}
