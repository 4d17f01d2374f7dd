package fidelity_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// mostRefused is how many of the kinds in objects.yaml a real API server may refuse to create, for
// an admission plugin or a feature that is off.
const mostRefused = 5

// TestDeletionsAreAnsweredAlike deletes an object of each kind, by each policy. The answer must be
// of the same kind: the object as it was, or is, or a Status. So must its finalizers, and its code.
func TestDeletionsAreAnsweredAlike(t *testing.T) {
	theirs, ours := startReal(t), startOurs(t)
	const namespace = "deletions"
	theirs.makeNamespace(t, namespace)
	ours.makeNamespace(t, namespace)
	paths, refused := theirs.pathsOfKinds(t), []string{}
	text, err := os.ReadFile(filepath.Join("testdata", "objects.yaml"))
	require.NoError(t, err)
	for i, document := range strings.Split(string(text), "\n---\n") {
		var object map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(document, "NAME", namespace)), &object))
		kind := fmt.Sprint(object["apiVersion"], " ", object["kind"])
		path := strings.ReplaceAll(paths[kind], "NAMESPACE", namespace)
		require.NotEmpty(t, path, "%s is not served", kind)
		for j, query := range []string{"", "?propagationPolicy=Orphan", "?propagationPolicy=Foreground", "?propagationPolicy=Background"} {
			name := fmt.Sprintf("o-%d-%d", i, j)
			object["metadata"] = map[string]string{"name": name}
			if kind == "v1 Event" {
				object["metadata"] = map[string]string{"name": name, "namespace": namespace}
			}
			if code, _ := theirs.do(t, http.MethodPost, path, object); code != http.StatusCreated {
				refused = append(refused, kind)
				break
			}
			code, answer := ours.do(t, http.MethodPost, path, object)
			require.Equal(t, http.StatusCreated, code, "%s: %v", kind, answer)
			wantCode, want := theirs.do(t, http.MethodDelete, path+"/"+name+query, nil)
			gotCode, got := ours.do(t, http.MethodDelete, path+"/"+name+query, nil)
			require.Equal(t, wantCode, gotCode, kind+query)
			require.Equal(t, want.Kind, got.Kind, kind+query)
			// Those of storage in use are an admission's, which the fake does not have.
			inUse := func(name string) bool { return strings.HasSuffix(name, "-protection") }
			require.ElementsMatch(t, slices.DeleteFunc(want.Finalizers, inUse), slices.DeleteFunc(got.Finalizers, inUse), kind+query)
			require.Equal(t, want.ResourceVersion == "", got.ResourceVersion == "", kind+query)
		}
	}
	require.LessOrEqual(t, len(refused), mostRefused, "%v", refused)
	t.Logf("refused by the API server: %v", refused)
}

// TestFieldLabelsAreThoseOfTheAPIServer asks for a list of each kind by each label that any of them
// has.
func TestFieldLabelsAreThoseOfTheAPIServer(t *testing.T) {
	theirs, ours := startReal(t), startOurs(t)
	labels := []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.host", "spec.restartPolicy", "spec.schedulerName",
		"spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
		"spec.unschedulable", "status.replicas", "spec.replicas", "status.successful", "spec.signerName", "spec.driver", "spec.clusterIP",
		"spec.type", "type", "name", "reason", "reportingComponent", "reportingController", "source", "involvedObject.kind",
		"involvedObject.fieldPath", "regarding.kind",
	}
	served := ours.pathsOfKinds(t)
	for kind, path := range theirs.pathsOfKinds(t) {
		if _, ok := served[kind]; !ok || strings.Contains(path, widgetGroup) {
			continue
		}
		path = strings.ReplaceAll(path, "NAMESPACE", "default")
		for _, label := range labels {
			want, _ := theirs.do(t, http.MethodGet, path+"?fieldSelector="+label+"%3Dx", nil)
			got, _ := ours.do(t, http.MethodGet, path+"?fieldSelector="+label+"%3Dx", nil)
			require.Equal(t, want, got, "%s by %s", kind, label)
		}
	}
}

// pathsOfKinds are the paths of the collections that can be created in and listed, by apiVersion
// and kind, with NAMESPACE for the namespace.
func (s *side) pathsOfKinds(t *testing.T) map[string]string {
	t.Helper()
	paths := map[string]string{}
	for path, k := range s.kinds(t) {
		if strings.Contains(k.Name, "/") || !slices.Contains(k.Verbs, "create") || !slices.Contains(k.Verbs, "list") {
			continue
		}
		group := strings.TrimSuffix(path, "/"+k.Name)
		version := strings.TrimPrefix(strings.TrimPrefix(group, "/apis/"), "/api/")
		if k.Namespaced {
			group += "/namespaces/NAMESPACE"
		}
		paths[version+" "+k.Kind] = group + "/" + k.Name
	}
	return paths
}

// do sends one request, and reads what the answer says of an object.
func (s *side) do(t *testing.T, method, path string, body any) (int, metav1.PartialObjectMetadata) {
	t.Helper()
	var document []byte
	if body != nil {
		var err error
		document, err = json.Marshal(body)
		require.NoError(t, err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(document))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+s.token)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := s.client.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	var object metav1.PartialObjectMetadata
	require.NoError(t, json.Unmarshal(text, &object), "%s %s: %s", method, path, text)
	return answer.StatusCode, object
}
