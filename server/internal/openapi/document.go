package openapi

import (
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/util"
)

// Kind is a kind of objects.
type Kind struct {
	apischema.GroupVersionKind
	// Type is the Go type of an object, or of a pointer to one; nil for a custom resource.
	Type reflect.Type
	// Schema is that of a custom resource, as the API server publishes it; nil allows everything.
	Schema map[string]any
}

// Resource is a resource or a subresource of a group version.
type Resource struct {
	Kind
	// Path is below the group version, such as /namespaces/{namespace}/pods.
	Path string
	// Verbs are those of its discovery.
	Verbs []string
	// Subresource says that all verbs are those of one object, under Path + /{name}/Subresource.
	Subresource string
}

// Document is the OpenAPI v3 document of the resources of one group version, at the path root.
func Document(root string, resources []Resource) map[string]any {
	known := models{}
	paths := schema{}
	for _, r := range resources {
		name := known.kind(r.Kind)
		one := root + r.Path + "/{name}"
		if r.Subresource != "" {
			one += "/" + r.Subresource
		}
		for _, verb := range r.Verbs {
			path, method := one, methods[verb]
			switch {
			case method == "":
				continue
			case r.Subresource == "" && slices.Contains([]string{"list", "create", "deletecollection"}, verb):
				path = root + r.Path
			}
			operations, ok := paths[path].(schema)
			if !ok {
				operations = schema{}
				paths[path] = operations
			}
			operations[method] = operation(r.GroupVersionKind, verb, name)
		}
	}
	return schema{
		"openapi": "3.0.0", "info": schema{"title": "Kubernetes", "version": "unversioned"},
		"paths": paths, "components": schema{"schemas": known},
	}
}

// methods are the methods of the verbs that an operation describes.
var methods = map[string]string{
	"get": "get", "list": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete",
	"deletecollection": "delete",
}

func operation(gvk apischema.GroupVersionKind, verb, model string) schema {
	o := schema{
		extensionKind: kindOf(gvk), "x-kubernetes-action": verb, "parameters": parameters[verb],
		"responses": schema{"200": schema{"description": "OK", "content": schema{"application/json": schema{
			"schema": schema{"$ref": referencePrefix + model},
		}}}},
	}
	if parameters[verb] == nil {
		o["parameters"] = []schema{}
	}
	return o
}

// extensionKind is the extension that names the kind of a schema or an operation.
const extensionKind = "x-kubernetes-group-version-kind"

func kindOf(gvk apischema.GroupVersionKind) schema {
	return schema{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
}

// parameters are those that clients look for before they send them.
var parameters = map[string][]schema{
	"create": query("dryRun", "fieldManager", "fieldValidation"),
	"update": query("dryRun", "fieldManager", "fieldValidation"),
	"patch":  query("dryRun", "fieldManager", "fieldValidation", "force"),
	"delete": query("dryRun", "gracePeriodSeconds", "propagationPolicy"),
}

func query(names ...string) (all []schema) {
	for _, name := range names {
		all = append(all, schema{"name": name, "in": "query", "schema": schema{"type": "string", "uniqueItems": true}})
	}
	return all
}

// kind describes a kind, and returns the name of its model.
func (m models) kind(k Kind) string {
	if k.Type == nil {
		return m.custom(k)
	}
	name := m.add(pointed(k.Type))
	kinds, _ := m[name][extensionKind].([]schema)
	if !slices.ContainsFunc(kinds, func(has schema) bool { return maps.Equal(has, kindOf(k.GroupVersionKind)) }) {
		m[name][extensionKind] = append(kinds, kindOf(k.GroupVersionKind))
	}
	return name
}

// custom describes a custom resource.
func (m models) custom(k Kind) string {
	name := util.ToRESTFriendlyName(k.Group + "/" + k.Version + "." + k.Kind)
	if _, known := m[name]; known {
		return name
	}
	metadata := m.add(reflect.TypeFor[metav1.ObjectMeta]()) // to which the published schema refers
	s := maps.Clone(k.Schema)
	if s == nil {
		properties := schema{"metadata": schema{"$ref": referencePrefix + metadata}}
		m.addFields(reflect.TypeFor[metav1.TypeMeta](), properties)
		s = schema{"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties}
	}
	s[extensionKind] = []schema{kindOf(k.GroupVersionKind)}
	m[name] = s
	return name
}
