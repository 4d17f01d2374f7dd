package fidelity_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// side is one of the two servers.
type side struct {
	name, url, token string
	authority        []byte // the certificate that signs those of the server; nil without TLS
	client           *http.Client

	kubeconfig string // the path of the server's own; empty if it writes none
}

// run sends the requests of a case and returns the answers, one text for each, without what must
// differ: UIDs, versions and times.
func (s *side) run(t testing.TB, c *testCase, namespace string) (answers []string) {
	t.Helper()
	variables := map[string]string{"ns": namespace, "uid": "", "rv": "", "first": ""}
	for _, step := range c.steps {
		request, err := http.NewRequestWithContext(t.Context(), step.method,
			s.url+fill(step.url(namespace), variables), strings.NewReader(fill(step.body, variables)))
		require.NoError(t, err)
		request.Header = step.header.Clone()
		request.Header.Set("Authorization", "Bearer "+s.token)
		request.Header.Set("User-Agent", "table")
		answer, err := s.client.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		answers = append(answers, describe(t, answer, body, c.owners, namespace))
		remember(body, variables)
	}
	return answers
}

// remember keeps the UID and the version of an answered object for the next requests.
func remember(body []byte, variables map[string]string) {
	var object metav1.PartialObjectMetadata
	if json.Unmarshal(body, &object) != nil || object.ResourceVersion == "" {
		return
	}
	variables["rv"] = object.ResourceVersion
	if variables["first"] == "" {
		variables["first"] = object.ResourceVersion
	}
	if object.UID != "" {
		variables["uid"] = string(object.UID)
	}
}

// describe is an answer as a text that is equal on both servers.
func describe(t testing.TB, answer *http.Response, body []byte, owners bool, namespace string) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "%d", answer.StatusCode)
	for _, warning := range slices.Sorted(slices.Values(answer.Header.Values("Warning"))) {
		fmt.Fprintf(&out, "\nWarning: %s", warning)
	}
	mediaType, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";")
	fmt.Fprintf(&out, "\n%s", mediaType)
	if mediaType == "application/yaml" {
		converted, err := yaml.YAMLToJSON(body)
		require.NoError(t, err)
		body = converted
	}
	documents := json.NewDecoder(bytes.NewReader(body))
	documents.UseNumber()
	for {
		var document any
		err := documents.Decode(&document)
		if err == io.EOF {
			return out.String()
		}
		if err != nil {
			fmt.Fprintf(&out, "\n%s", body)
			return out.String()
		}
		if isTimedBookmark(document) {
			continue
		}
		document = normal(document, "")
		if !owners {
			dropOwners(document)
		}
		text, err := json.MarshalIndent(document, "", " ")
		require.NoError(t, err)
		fmt.Fprintf(&out, "\n%s", strings.ReplaceAll(string(text), namespace, "NAMESPACE"))
	}
}

// failure is the compared part of a Status: each server has its own words.
type failure struct {
	Code   int32
	Reason metav1.StatusReason
	Fields []string `json:",omitempty"`
}

// normal replaces what must differ.
func normal(value any, key string) any {
	switch v := value.(type) {
	case map[string]any:
		if v["kind"] == "Status" && v["status"] == metav1.StatusFailure {
			return failureOf(v)
		}
		result := map[string]any{}
		for k, member := range v {
			result[k] = normal(member, k)
		}
		if name, _ := v["generateName"].(string); name != "" {
			if given, _ := v["name"].(string); given != "" {
				result["name"] = fmt.Sprintf("GENERATED %d", len(given))
			}
		}
		if reference, _ := v["selfLink"].(string); reference == "" {
			delete(result, "selfLink")
		}
		return result
	case []any:
		result := make([]any, 0, len(v))
		for _, member := range v {
			result = append(result, normal(member, key))
		}
		if key == "managedFields" {
			// Their order goes by the second of each write, which may differ between servers.
			slices.SortFunc(result, func(a, b any) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		return result
	case string:
		// The server's file has a version in its name.
		if key == "manager" && strings.HasPrefix(v, "kube-apiserver") {
			return "kube-apiserver"
		}
		if v != "" && slices.Contains(varying, key) {
			return strings.ToUpper(key)
		}
		if key == "cells" && age.MatchString(v) {
			return "AGE"
		}
		// A second may end between the requests to the two servers.
		if at, err := time.Parse(time.RFC3339, v); err == nil && time.Since(at).Abs() < time.Hour {
			return "NOW"
		}
	}
	return value
}

// isTimedBookmark reports whether a document is a bookmark that comes when a server finds time.
func isTimedBookmark(document any) bool {
	event, _ := document.(map[string]any)
	if event["type"] != "BOOKMARK" {
		return false
	}
	_, ends, _ := unstructured.NestedString(event, "object", "metadata", "annotations", metav1.InitialEventsAnnotationKey)
	return !ends
}

// dropOwners removes the managed fields of an object, or of all objects in a list or event.
func dropOwners(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "managedFields")
		for _, member := range v {
			dropOwners(member)
		}
	case []any:
		for _, member := range v {
			dropOwners(member)
		}
	}
}

// age is a cell of a table that may show another second on each server.
var age = regexp.MustCompile(`^\d+s$`)

// varying are the names of fields whose values differ from server to server.
var varying = []string{"uid", "resourceVersion", "continue"}

func failureOf(status map[string]any) failure {
	document, _ := json.Marshal(status) // it was decoded from JSON
	var s metav1.Status
	_ = json.Unmarshal(document, &s) // a code of another type shows as zero
	f := failure{Code: s.Code, Reason: s.Reason}
	if s.Details == nil {
		return f
	}
	for _, cause := range s.Details.Causes {
		f.Fields = append(f.Fields, fmt.Sprintf("%s: %s", cause.Field, cause.Type))
	}
	slices.Sort(f.Fields)
	f.Fields = slices.Compact(f.Fields)
	return f
}
