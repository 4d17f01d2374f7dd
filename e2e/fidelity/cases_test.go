package fidelity_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// section is a group of cases about one subject.
type section struct {
	title string
	cases []*testCase
}

// testCase is one line of the table: requests that are sent one after the other, in a namespace of
// the case's own.
type testCase struct {
	name   string
	steps  []step
	owners bool   // managed fields are compared
	differ string // why the answers differ; empty if they must not
}

// step is one request.
type step struct {
	method, path, body string
	header             http.Header
}

// patchTypes are the methods of the table that stand for a PATCH of a media type.
var patchTypes = map[string]types.PatchType{
	"JSON": types.JSONPatchType, "MERGE": types.MergePatchType,
	"STRATEGIC": types.StrategicMergePatchType, "APPLY": types.ApplyYAMLPatchType,
}

// entry is a line of a list in testdata that is no title and no comment.
type entry struct{ where, section, text string }

func readEntries(t testing.TB, file string) (entries []entry) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	section := ""
	for i, line := range strings.Split(string(text), "\n") {
		where := fmt.Sprintf("%s:%d", file, i+1)
		if title, ok := strings.CutPrefix(line, "== "); ok {
			section = title
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		require.NotEmpty(t, section, "%s: nothing may stand before the first section", where)
		entries = append(entries, entry{where, section, line})
	}
	return entries
}

func readCases(t testing.TB) (sections []*section) {
	t.Helper()
	names := map[string]bool{}
	for _, e := range readEntries(t, "cases.txt") {
		if len(sections) == 0 || sections[len(sections)-1].title != e.section {
			sections = append(sections, &section{title: e.section})
		}
		s := sections[len(sections)-1]
		if reason, ok := strings.CutPrefix(e.text, "  ! "); ok {
			require.NotEmpty(t, s.cases, "%s: a reason without a case", e.where)
			s.cases[len(s.cases)-1].differ = reason
			continue
		}
		name, requests, ok := strings.Cut(e.text, ": ")
		require.True(t, ok, "%s: a case is name: request ; request", e.where)
		full := s.title + "/" + name
		require.False(t, names[full], "%s: %s is there twice", e.where, full)
		names[full] = true
		c := &testCase{name: name, owners: strings.Contains(s.title, "managed fields")}
		for _, request := range strings.Split(requests, " ; ") {
			c.steps = append(c.steps, readStep(t, e.where, request))
		}
		s.cases = append(s.cases, c)
	}
	return sections
}

// request splits METHOD[Header=value] path body.
var request = regexp.MustCompile(`^([A-Z]+)(?:\[([^\]]*)\])? (\S+)(?: (.*))?$`)

func readStep(t testing.TB, where, text string) step {
	t.Helper()
	parts := request.FindStringSubmatch(strings.TrimSpace(text))
	require.NotNil(t, parts, "%s: %q is not METHOD path body", where, text)
	s := step{method: parts[1], path: parts[3], body: parts[4], header: http.Header{}}
	if kind, ok := patchTypes[s.method]; ok {
		s.method = http.MethodPatch
		s.header.Set("Content-Type", string(kind))
	} else if s.body != "" {
		s.header.Set("Content-Type", "application/json")
	}
	for _, pair := range strings.Split(parts[2], ",") {
		if key, value, ok := strings.Cut(pair, "="); ok {
			s.header.Set(key, value)
		}
	}
	return s
}

// prefixes are the paths of the resources by their plural.
var prefixes = map[string]string{
	"widgets": "/apis/" + widgetGroup + "/v1", "gadgets": "/apis/" + widgetGroup + "/v1",
	"poddisruptionbudgets": "/apis/policy/v1",
	"leases":               "/apis/coordination.k8s.io/v1",
}

// url is the path of a step in a namespace. A path that begins with / is whole.
func (s step) url(namespace string) string {
	if strings.HasPrefix(s.path, "/") {
		return s.path
	}
	plural := regexp.MustCompile(`^[a-z]+`).FindString(s.path)
	prefix, ok := prefixes[plural]
	if !ok {
		prefix = "/api/v1"
	}
	return prefix + "/namespaces/" + namespace + "/" + s.path
}

var repeated = regexp.MustCompile(`\$\{(.+?)\*(\d+)\}`)

// macros are what the table abbreviates.
var macros = strings.NewReplacer(
	"@widget", `"apiVersion":"`+widgetGroup+`/v1","kind":"Widget"`,
	"@gadget", `"apiVersion":"`+widgetGroup+`/v1","kind":"Gadget"`,
	"@budget", `"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"l":"m"}}}`,
	"@allows", `"observedGeneration":1,"expectedPods":1,"currentHealthy":1,"desiredHealthy":1,"disruptionsAllowed"`,
	"@ready", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`,
	"@labelled", `"metadata":{"name":"a","labels":{"l":"m"}}`,
	"@spec", `"spec":{"containers":[{"name":"c","image":"i"}]}`,
)

// fill replaces macros, ${text*n} and the variables.
func fill(text string, variables map[string]string) string {
	text = macros.Replace(text)
	text = repeated.ReplaceAllStringFunc(text, func(match string) string {
		parts := repeated.FindStringSubmatch(match)
		n, _ := strconv.Atoi(parts[2]) // the pattern has digits only
		return strings.Repeat(parts[1], n)
	})
	for name, value := range variables {
		text = strings.ReplaceAll(text, "$"+name, value)
	}
	return text
}
