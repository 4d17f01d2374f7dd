package apiserver

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/tributary-go/tributary/server/internal/openapi"
)

const (
	openAPIPath = "/openapi/v3"
	swaggerPath = "/openapi/v2"
)

// OpenAPI v2 in protobuf has two media types: client-go asks for one, and is answered with the
// other, which can be parsed.
const (
	swaggerAsked    = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	swaggerAnswered = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
)

// serveSwagger answers with OpenAPI v2.
func serveSwagger(w http.ResponseWriter, r *http.Request, resources []endpoint) {
	var documents []map[string]any
	for root, described := range models(resources) {
		documents = append(documents, openapi.Document(root, described))
	}
	doc, err := json.Marshal(openapi.Swagger(documents...))
	contentType := jsonType
	accept := r.Header.Get("Accept")
	if err == nil && (strings.Contains(accept, swaggerAsked) || strings.Contains(accept, swaggerAnswered)) {
		contentType = swaggerAnswered
		doc, err = swaggerProtobuf(doc)
	}
	if err != nil {
		RespondError(w, err)
		return
	}
	respondBytes(w, contentType, http.StatusOK, doc)
}

func swaggerProtobuf(doc []byte) ([]byte, error) {
	parsed, err := openapiv2.ParseDocument(doc)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(parsed)
}

// openAPIDocument is the answer under a path of OpenAPI v3; nil if there is none.
func openAPIDocument(path string, resources []endpoint) any {
	below, ok := strings.CutPrefix(path, openAPIPath)
	if !ok {
		return nil
	}
	roots := models(resources)
	if below == "" {
		index := map[string]any{}
		for root := range roots {
			index[strings.TrimPrefix(root, "/")] = map[string]any{"serverRelativeURL": openAPIPath + root}
		}
		return map[string]any{"paths": index}
	}
	if described, ok := roots[below]; ok {
		return openapi.Document(below, described)
	}
	return nil
}

// models describe the resources, by the paths of their group versions.
func models(resources []endpoint) map[string][]openapi.Resource {
	all := map[string][]openapi.Resource{}
	for _, e := range resources {
		root := versionPath(e.groupVersionResource().GroupVersion())
		all[root] = append(all[root], modelsOf(e)...)
	}
	return all
}

// modelsOf describes a resource and its subresources.
func modelsOf(e endpoint) (all []openapi.Resource) {
	for _, r := range e.describe() {
		plural, subresource, _ := strings.Cut(r.Name, "/")
		path := "/" + plural
		if r.Namespaced {
			path = "/namespaces/{namespace}" + path
		}
		kind := openapi.Kind{GroupVersionKind: e.groupVersionResource().GroupVersion().WithKind(r.Kind)}
		if r.body != nil {
			kind.GroupVersionKind, kind.Type = r.bodyKind, reflect.TypeOf(r.body)
		} else if _, isDocument := e.sample().(runtime.Unstructured); !isDocument {
			kind.Type = reflect.TypeOf(e.sample())
		} else {
			kind.Schema = published(e.schema())
		}
		all = append(all, openapi.Resource{Kind: kind, Path: path, Verbs: r.Verbs, Subresource: subresource})
	}
	return all
}

// published is a schema as a JSON document; nil without one.
func published(s *spec.Schema) (document map[string]any) {
	if s == nil {
		return nil
	}
	doc, err := json.Marshal(s)
	if err != nil || json.Unmarshal(doc, &document) != nil {
		return nil // a schema that cannot be written says nothing
	}
	return document
}

// versionPath is where a group version is served.
func versionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}
