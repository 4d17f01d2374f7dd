package fidelity_test

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKindsAreThoseOfTheAPIServer compares all resources that the servers have: their names,
// scopes, verbs and subresources in discovery, and the columns of their tables.
func TestKindsAreThoseOfTheAPIServer(t *testing.T) {
	want := startReal(t).kinds(t)
	for _, ours := range []*side{startOurs(t), startProgram(t)} {
		got := ours.kinds(t)
		t.Run(ours.name, func(t *testing.T) {
			for path, resource := range want {
				t.Run(path, func(t *testing.T) {
					if why := missing(ours.name, path); why != "" {
						require.NotContains(t, got, path, "it is there: remove the reason (%s)", why)
						return
					}
					require.Equal(t, resource, got[path])
				})
			}
			// The Go type of client-go 0.37 has a status.
			delete(got, "/apis/storage.k8s.io/v1/csinodes/status")
			for path := range got {
				require.Contains(t, want, path)
			}
		})
	}
}

// missing says why a server does not have a resource; empty if it must.
func missing(server, path string) string {
	for why, paths := range map[string][]string{
		"nodes have no kubelets": {
			"/api/v1/nodes/proxy", "/api/v1/pods/attach", "/api/v1/pods/ephemeralcontainers", "/api/v1/pods/exec", "/api/v1/pods/log",
			"/api/v1/pods/portforward", "/api/v1/pods/proxy", "/api/v1/pods/resize", "/api/v1/services/proxy",
		},
		"old, and replaced by others": {"/api/v1/bindings", "/api/v1/componentstatuses"},
		"there is no authentication":  {"/apis/authentication.k8s.io/v1/tokenreviews", "/apis/authorization.k8s.io/v1/localsubjectaccessreviews"},
		"the oldest client-go that is supported has no Go type of it": {
			"/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies",
			"/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings",
		},
	} {
		if slices.Contains(paths, path) {
			return why
		}
	}
	if server == theFake && strings.HasPrefix(path, "/apis/apiextensions.k8s.io/") {
		return "the fake has the resources of definitions, and not the definitions"
	}
	return ""
}

// kind is a resource as clients see it.
type kind struct {
	metav1.APIResource
	Columns []metav1.TableColumnDefinition
}

// kinds are the resources of a server, by their path.
func (s *side) kinds(t *testing.T) map[string]kind {
	t.Helper()
	paths := []string{"/api/v1"}
	var groups metav1.APIGroupList
	s.get(t, "/apis", "application/json", &groups)
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			paths = append(paths, "/apis/"+version.GroupVersion)
		}
	}
	all := map[string]kind{}
	for _, path := range paths {
		var resources metav1.APIResourceList
		s.get(t, path, "application/json", &resources)
		for _, resource := range resources.APIResources {
			resource.StorageVersionHash = "" // optional
			slices.Sort(resource.Verbs)
			k := kind{APIResource: resource}
			if slices.Contains(resource.Verbs, "list") {
				var table metav1.Table
				s.get(t, path+"/"+resource.Name, "application/json;as=Table;v=v1;g=meta.k8s.io", &table)
				k.Columns = table.ColumnDefinitions
				for i := range k.Columns {
					k.Columns[i].Description = "" // docs/fake.md
				}
			}
			all[path+"/"+resource.Name] = k
		}
	}
	return all
}

// get reads a document.
func (s *side) get(t *testing.T, path, accept string, into any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Accept", accept)
	answer, err := s.client.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, answer.Body.Close()) }()
	require.Equal(t, http.StatusOK, answer.StatusCode, path)
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(body, into), path)
}
