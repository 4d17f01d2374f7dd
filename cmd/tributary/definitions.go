package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/tributary-go/tributary/etcd"
	stored "github.com/tributary-go/tributary/etcd/origin"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/crd"
)

type definition = apiextensionsv1.CustomResourceDefinition

const (
	definitionsName = "customresourcedefinitions"
	// definitionsPath is where kube-apiserver keeps them.
	definitionsPath = apiextensionsv1.GroupName + "/" + definitionsName
)

// fromFile reads the custom resources of a file of definitions, in YAML or JSON.
func fromFile(path string) (all []resource, err error) {
	definitions, err := crd.Load(path)
	if err != nil {
		return nil, err
	}
	for _, d := range definitions {
		versions, err := crd.Versions(d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, v := range versions {
			all = append(all, custom(v))
		}
	}
	return all, nil
}

// defined names the definitions that an etcd has.
func defined(ctx context.Context, client *clientv3.Client, prefix string) (names map[string]bool, err error) {
	names = map[string]bool{}
	for d, err := range definitionSource(client, prefix).List(ctx, metav1.ListOptions{}).Items {
		switch {
		case err == nil:
			names[d.Name] = true
		case !errors.As(err, new(*listwatch.DecodeError)): // the follower tells of that one
			return nil, err
		}
	}
	return names, nil
}

// definitions serves the definitions themselves.
func definitions(s *site, r resource) (running, error) {
	described := crd.Definitions()
	c, err := stored.New(definitionSource(s.client, s.prefix).With(s.encrypted(r.GroupResource())...), described.Kind, described.Rules)
	if err != nil {
		return running{}, err
	}
	s.definitions = c
	return newRunning(s, r, c, described.View), nil
}

func definitionSource(client *clientv3.Client, prefix string) *etcd.Source[*definition] {
	from := resource{path: definitionsPath}.prefix(prefix)
	return etcd.New[definition](client, from, etcd.WithConversion(toV1(), nil))
}

// toV1 converts definitions that kube-apiserver has stored, by its own code: it stores v1beta1.
func toV1() func(stored []byte) ([]byte, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme).UniversalDecoder()
	return func(stored []byte) ([]byte, error) {
		var is metav1.TypeMeta
		if err := json.Unmarshal(stored, &is); err != nil || is.APIVersion == apiextensionsv1.SchemeGroupVersion.String() {
			return stored, err
		}
		obj, err := runtime.Decode(decoder, stored)
		if err == nil {
			obj, err = scheme.ConvertToVersion(obj, apiextensionsv1.SchemeGroupVersion)
		}
		if err != nil {
			return nil, errors.New("it is no CustomResourceDefinition of a known version")
		}
		return json.Marshal(obj)
	}
}

// custom is a version of a custom resource.
func custom(v crd.Version) resource {
	kind := v.Resource.Kind
	return resource{
		GroupVersionResource: kind.GroupVersionResource(), path: kind.Group + "/" + kind.Plural,
		add: func(s *site, r resource) (running, error) {
			source := etcd.New[unstructured.Unstructured](s.client, r.prefix(s.prefix), etcd.WithConversion(v.Read, v.Write))
			return add(s, r, source, v.Resource)
		},
	}
}
