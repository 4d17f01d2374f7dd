package relay

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tributary-go/tributary/server/apiserver"
)

// read is a request that a copy may be able to answer.
type read struct {
	target  apiserver.Target
	options internalversion.ListOptions
	asTable bool
}

// The parameters that copies know. The upstream answers a request with any other.
var (
	parametersOfGets  = sets.New("resourceVersion", "pretty", "timeout", "includeObject")
	parametersOfLists = parametersOfGets.Union(sets.New("watch", "allowWatchBookmarks", "resourceVersionMatch",
		"timeoutSeconds", "limit", "continue", "sendInitialEvents", "labelSelector", "fieldSelector"))
)

// readOf is the read that a request asks for. It reports false for every other request, and for a
// read that cannot be understood: the upstream says why.
func readOf(r *http.Request) (asked read, ok bool) {
	if r.Method != http.MethodGet || impersonates(r.Header) {
		return asked, false
	}
	asked.target, ok = apiserver.ParseTarget(r.URL.Path)
	if !ok || asked.target.Subresource != "" || strings.HasSuffix(r.URL.Path, "/") {
		return asked, false
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || !onlyHas(query, asked.parameters()) {
		return asked, false
	}
	if scheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &asked.options) != nil {
		return asked, false
	}
	if r.Header.Get("Upgrade") != "" && !asked.options.Watch || asked.options.Watch && asked.options.Continue != "" {
		return asked, false
	}
	asked.asTable = strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "as=Table")
	return asked, true
}

func (r read) parameters() sets.Set[string] {
	if r.target.Name != "" {
		return parametersOfGets
	}
	return parametersOfLists
}

func onlyHas(query url.Values, known sets.Set[string]) bool {
	for name := range query {
		if !known.Has(name) {
			return false
		}
	}
	return true
}

// impersonates reports whether a client speaks for another user, which the upstream must judge.
func impersonates(header http.Header) bool {
	for name := range header {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

// byName reports whether a read asks for one object by its name.
func (r read) byName() bool {
	if r.target.Name != "" {
		return true
	}
	if r.options.FieldSelector == nil {
		return false
	}
	_, named := r.options.FieldSelector.RequiresExactMatch(metav1.ObjectNameField)
	return named
}

// fits reports whether the kind that discovery has is the kind that the path means.
func (r read) fits(kind metav1.APIResource) bool {
	switch {
	case !kind.Namespaced:
		return r.target.Namespace == ""
	case r.target.Name != "":
		return r.target.Namespace != ""
	}
	return true
}
