package watchcache

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is what the path of a request names.
type target struct {
	resource    schema.GroupVersionResource
	namespace   string // empty: all namespaces, or cluster scope
	name        string // empty: the collection
	subresource string
}

// parseTarget reads /api/v1/… and /apis/GROUP/VERSION/…; ok is false for other paths.
func parseTarget(path string) (t target, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.resource.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.resource.Group, t.resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	// namespaces/NS/pods is in a namespace, namespaces/NS is the namespace itself.
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		if parts[1] == "" {
			return t, false
		}
		t.namespace, parts = parts[1], parts[2:]
	}
	for i, into := range []*string{&t.resource.Resource, &t.name, &t.subresource} {
		if i < len(parts) {
			if parts[i] == "" {
				return t, false
			}
			*into = parts[i]
		}
	}
	return t, len(parts) <= 3
}

// call is one request to one resource.
type call struct {
	http.ResponseWriter
	request *http.Request // its context also ends when the server closes
	target  target
	format  format
}

func (c call) query(name string) string { return c.request.URL.Query().Get(name) }
