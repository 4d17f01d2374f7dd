package apiserver

import (
	"net/http"
	"runtime"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/tributary-go/tributary/server/internal/apierror"
)

// kubernetesVersion is the release that is imitated; clients refuse to talk to much
// older ones.
const kubernetesVersion = "v1.36.3"

// aggregatedType is the media type of all groups in one document.
const aggregatedType = jsonType + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// serveDiscovery answers the requests of clients that do not know the resources yet.
func serveDiscovery(w http.ResponseWriter, r *http.Request, resources []endpoint) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		RespondError(w, apierror.Refused(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			"the server does not allow this method on the requested resource"))
		return
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch {
	case path == "/version":
		respondJSON(w, jsonType, version.Info{
			Major: "1", Minor: "36", GitVersion: kubernetesVersion,
			GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
		})
		return
	case path == swaggerPath:
		serveSwagger(w, r, resources)
		return
	case (path == "/api" || path == "/apis") && asksAggregated(r):
		w.Header().Set("Vary", "Accept")
		respondJSON(w, aggregatedType, aggregated(path == "/api", resources))
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
	RespondError(w, notFound(r.URL.Path))
}

// asksAggregated reports whether a client takes all groups in one document. Such clients name it
// first.
func asksAggregated(r *http.Request) bool {
	for _, clause := range strings.Split(r.Header.Get("Accept"), ",") {
		if strings.ReplaceAll(clause, " ", "") == aggregatedType {
			return true
		}
	}
	return false
}

// aggregated has the core group, or all others.
func aggregated(core bool, resources []endpoint) apidiscovery.APIGroupDiscoveryList {
	list := apidiscovery.APIGroupDiscoveryList{
		TypeMeta: typeMeta("APIGroupDiscoveryList", apidiscovery.SchemeGroupVersion.String()),
		Items:    []apidiscovery.APIGroupDiscovery{},
	}
	if core {
		list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{
			Versions: []apidiscovery.APIVersionDiscovery{aggregatedVersion(coreVersion, resources)},
		})
		return list
	}
	for _, g := range groups(resources) {
		group := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
		for _, v := range g.Versions {
			gv := schema.GroupVersion{Group: g.Name, Version: v.Version}
			group.Versions = append(group.Versions, aggregatedVersion(gv, resources))
		}
		list.Items = append(list.Items, group)
	}
	return list
}

// aggregatedVersion has the resources of a group version, each with its subresources.
func aggregatedVersion(gv schema.GroupVersion, resources []endpoint) apidiscovery.APIVersionDiscovery {
	found := apidiscovery.APIVersionDiscovery{Version: gv.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent}
	for _, r := range resourceList(gv, resources).APIResources {
		kind := &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: r.Kind}
		if r.Version != "" {
			kind.Group, kind.Version = r.Group, r.Version
		}
		plural, subresource, below := strings.Cut(r.Name, "/")
		if below && len(found.Resources) > 0 && found.Resources[len(found.Resources)-1].Resource == plural {
			into := &found.Resources[len(found.Resources)-1]
			into.Subresources = append(into.Subresources, apidiscovery.APISubresourceDiscovery{
				Subresource: subresource, ResponseKind: kind, Verbs: r.Verbs,
			})
			continue
		}
		scope := apidiscovery.ScopeCluster
		if r.Namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		found.Resources = append(found.Resources, apidiscovery.APIResourceDiscovery{
			Resource: r.Name, ResponseKind: kind, Scope: scope, SingularResource: r.SingularName,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	return found
}

var coreVersion = schema.GroupVersion{Version: "v1"}

// discoveryDocument is the answer under a discovery path; nil where there is none.
func discoveryDocument(path string, resources []endpoint) any {
	switch parts := strings.Split(strings.Trim(path, "/"), "/"); {
	case path == "/api":
		return metav1.APIVersions{TypeMeta: typeMeta("APIVersions", ""), Versions: []string{"v1"}}
	case path == "/apis":
		return metav1.APIGroupList{TypeMeta: typeMeta("APIGroupList", "v1"), Groups: groups(resources)}
	case path == "/api/v1":
		return resourceList(coreVersion, resources)
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

// groups are the named API groups in the order of registration, each with its newest version first.
func groups(resources []endpoint) []metav1.APIGroup {
	found := []metav1.APIGroup{}
	at := map[string]int{}
	seen := map[schema.GroupVersion]bool{}
	add := func(gv schema.GroupVersion) {
		if gv.Group == "" || seen[gv] {
			return
		}
		seen[gv] = true
		v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		i, known := at[gv.Group]
		if !known {
			i = len(found)
			at[gv.Group] = i
			found = append(found, metav1.APIGroup{Name: gv.Group})
		}
		found[i].Versions = append(found[i].Versions, v)
	}
	for _, e := range resources {
		add(e.groupVersionResource().GroupVersion())
	}
	for _, r := range reviews {
		add(r.GroupVersion())
	}
	for i := range found {
		g := &found[i]
		slices.SortStableFunc(g.Versions, func(a, b metav1.GroupVersionForDiscovery) int {
			return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
		})
		g.PreferredVersion = g.Versions[0]
	}
	return found
}

func resourceList(gv schema.GroupVersion, resources []endpoint) metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta: typeMeta("APIResourceList", "v1"), GroupVersion: gv.String(), APIResources: []metav1.APIResource{},
	}
	for _, e := range resources {
		if e.groupVersionResource().GroupVersion() == gv {
			for _, d := range e.describe() {
				list.APIResources = append(list.APIResources, d.APIResource)
			}
		}
	}
	for _, r := range reviews {
		if r.GroupVersion() == gv {
			list.APIResources = append(list.APIResources, r.describe())
		}
	}
	return list
}
