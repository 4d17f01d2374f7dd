package apiserver

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The OpenAPI v3 of this server has no schemas. It says which kinds can be patched with
// fieldValidation, so that kubectl leaves the validation to the server (KEP-2885).

const openAPIPath = "/openapi/v3"

// document is a part of a JSON document.
type document = map[string]any

// openAPIDocument is the answer under a path of OpenAPI v3; nil if there is none.
func openAPIDocument(path string, resources []endpoint) any {
	below, ok := strings.CutPrefix(path, openAPIPath)
	if !ok {
		return nil
	}
	versions := map[string]document{}
	for _, e := range resources {
		root := versionPath(e.groupVersionResource().GroupVersion())
		if versions[root] == nil {
			versions[root] = document{}
		}
		for p, operation := range patches(e) {
			versions[root][root+p] = operation
		}
	}
	if below == "" {
		index := document{}
		for root := range versions {
			index[strings.TrimPrefix(root, "/")] = document{"serverRelativeURL": openAPIPath + root}
		}
		return document{"paths": index}
	}
	paths, ok := versions[below]
	if !ok {
		return nil
	}
	return document{
		"openapi": "3.0.0", "info": document{"title": "Kubernetes", "version": kubernetesVersion},
		"paths": paths, "components": document{},
	}
}

// versionPath is where a group version is served.
func versionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}

// patches are the PATCH operations of a resource, by the path below its group version.
func patches(e endpoint) map[string]document {
	found := map[string]document{}
	gv := e.groupVersionResource().GroupVersion()
	for _, r := range e.describe() {
		if !slices.Contains(r.Verbs, "patch") {
			continue
		}
		name, subresource, _ := strings.Cut(r.Name, "/")
		path := "/" + name + "/{name}"
		if r.Namespaced {
			path = "/namespaces/{namespace}" + path
		}
		if subresource != "" {
			path += "/" + subresource
		}
		found[path] = document{"patch": document{
			"x-kubernetes-group-version-kind": document{"group": gv.Group, "version": gv.Version, "kind": r.Kind},
			"parameters":                      []document{{"name": "fieldValidation", "in": "query", "schema": document{"type": "string"}}},
			"responses":                       document{"200": document{"description": "OK"}},
		}}
	}
	return found
}
