package apiserver

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Target is the object or collection that the path of a request names.
type Target struct {
	// Resource is the collection.
	Resource schema.GroupVersionResource
	// Namespace is empty for all namespaces, and for cluster scope.
	Namespace string
	// Name is empty for the collection as a whole.
	Name string
	// Subresource is the part of the object that is meant, such as "status"; empty for all of it.
	Subresource string
}

// ParseTarget reads a path of the form /api/v1/… or /apis/GROUP/VERSION/…; ok is false for other
// paths. It is for handlers around a [Server], which log or refuse requests.
func ParseTarget(path string) (t Target, ok bool) {
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	switch {
	case slices.Contains(parts, ""):
		return t, false
	case len(parts) >= 3 && parts[0] == "api":
		t.Resource.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.Resource.Group, t.Resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	// namespaces/NS/pods is in a namespace, namespaces/NS is the namespace itself.
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		t.Namespace, parts = parts[1], parts[2:]
	}
	for i, into := range []*string{&t.Resource.Resource, &t.Name, &t.Subresource} {
		if i < len(parts) {
			*into = parts[i]
		}
	}
	return t, len(parts) <= 3
}

// call is one request to one resource.
type call struct {
	http.ResponseWriter
	request *http.Request // its context also ends when the server closes
	target  Target
	format  format
	as      string // the kind that the client asks for; empty: the objects' own
	server  *Server
	watch   *preparedWatch // set for a watch that is to run
	turn    *turn          // set for a write that has begun
}
