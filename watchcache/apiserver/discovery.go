package apiserver

import (
	"net/http"
	"runtime"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/tributary-go/tributary/watchcache/internal/apierror"
)

// kubernetesVersion is the release whose behaviour is imitated; clients refuse to talk to much
// older ones.
const kubernetesVersion = "v1.36.0"

// serveDiscovery answers what clients ask before they know which resources there are.
func serveDiscovery(w http.ResponseWriter, r *http.Request, resources []endpoint) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		respondError(w, plainJSON, apierror.Refused(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			"the server does not allow this method on the requested resource"))
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	if path == "/version" {
		respondJSON(w, jsonType, version.Info{
			Major: "1", Minor: "36", GitVersion: kubernetesVersion,
			GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
		})
		return
	}
	found := discoveryDocument(path, resources)
	if found == nil {
		found = openAPIDocument(path, resources)
	}
	if found != nil {
		respondJSON(w, jsonType, found)
		return
	}
	respondError(w, plainJSON, notFound(r.URL.Path))
}

// discoveryDocument is the answer under a discovery path; nil where there is none. Clients that ask
// for the aggregated form accept this one too.
func discoveryDocument(path string, resources []endpoint) any {
	switch parts := strings.Split(strings.Trim(path, "/"), "/"); {
	case path == "/api":
		return metav1.APIVersions{TypeMeta: typeMeta("APIVersions", ""), Versions: []string{"v1"}}
	case path == "/apis":
		return metav1.APIGroupList{TypeMeta: typeMeta("APIGroupList", "v1"), Groups: groups(resources)}
	case path == "/api/v1":
		return resourceList(schema.GroupVersion{Version: "v1"}, resources)
	case len(parts) == 2 && parts[0] == "apis":
		for _, g := range groups(resources) {
			if g.Name == parts[1] {
				g.TypeMeta = typeMeta("APIGroup", "v1")
				return g
			}
		}
	case len(parts) == 3 && parts[0] == "apis":
		if list := resourceList(schema.GroupVersion{Group: parts[1], Version: parts[2]}, resources); len(list.APIResources) > 0 {
			return list
		}
	}
	return nil
}

// groups are the named API groups, each with its versions in the order of registration.
func groups(resources []endpoint) []metav1.APIGroup {
	found := []metav1.APIGroup{}
	at := map[string]int{}
	seen := map[schema.GroupVersion]bool{}
	for _, e := range resources {
		gv := e.groupVersionResource().GroupVersion()
		if gv.Group == "" || seen[gv] {
			continue
		}
		seen[gv] = true
		v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		i, known := at[gv.Group]
		if !known {
			i = len(found)
			at[gv.Group] = i
			found = append(found, metav1.APIGroup{Name: gv.Group, PreferredVersion: v})
		}
		found[i].Versions = append(found[i].Versions, v)
	}
	return found
}

func resourceList(gv schema.GroupVersion, resources []endpoint) metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta: typeMeta("APIResourceList", "v1"), GroupVersion: gv.String(), APIResources: []metav1.APIResource{},
	}
	for _, e := range resources {
		if e.groupVersionResource().GroupVersion() == gv {
			list.APIResources = append(list.APIResources, e.describe()...)
		}
	}
	return list
}
