package fidelity_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Variables of the generated requests: how long they are made, and from which seed.
const (
	generatedTime = "FIDELITY_TIME"
	generatedSeed = "FIDELITY_SEED"
)

// usualSequences are those of every run, from a seed that is always the same: some 15 seconds.
const usualSequences = 200

// TestGeneratedRequestsAreAnsweredAlike sends sequences of random requests to both servers and
// compares the answers. Whatever differs is mended, or becomes a case of the table. A run that is
// given a time looks further, from a seed of its own:
//
//	FIDELITY_TIME=10m go test -C e2e -timeout 20m -run TestGenerated ./fidelity
func TestGeneratedRequestsAreAnsweredAlike(t *testing.T) {
	seed, goesOn := uint64(1), func(n int) bool { return n < usualSequences }
	if given := os.Getenv(generatedTime); given != "" {
		lasts, err := time.ParseDuration(given)
		require.NoError(t, err, generatedTime)
		began := time.Now()
		seed, goesOn = rand.Uint64(), func(int) bool { return time.Since(began) < lasts }
	}
	if given := os.Getenv(generatedSeed); given != "" {
		var err error
		seed, err = strconv.ParseUint(given, 10, 64)
		require.NoError(t, err, generatedSeed)
	}
	t.Logf("%s=%d", generatedSeed, seed)
	theirs, ours := startReal(t), startOurs(t)
	n := 0
	for ; goesOn(n) && !t.Failed(); n++ {
		g := generator{rand.New(rand.NewPCG(seed, uint64(n)))}
		c := g.sequence()
		t.Run(fmt.Sprintf("sequence %d", n), func(t *testing.T) {
			namespace := fmt.Sprintf("generated-%d", n)
			theirs.makeNamespace(t, namespace)
			ours.makeNamespace(t, namespace)
			want, got := theirs.run(t, c, namespace), ours.run(t, c, namespace)
			for i := range want {
				require.Equal(t, want[i], got[i], "request %d of\n%s", i+1, c)
			}
		})
	}
	t.Logf("%d sequences", n)
}

// String is the case as the table has it.
func (c *testCase) String() string {
	var steps []string
	for _, s := range c.steps {
		method := s.method
		for name, kind := range patchTypes {
			if s.header.Get("Content-Type") == string(kind) {
				method = name
			}
		}
		steps = append(steps, strings.TrimSpace(method+" "+s.path+" "+s.body))
	}
	return strings.Join(steps, " ; ")
}

// generator makes requests.
type generator struct{ *rand.Rand }

func pick[T any](g generator, of ...T) T { return of[g.IntN(len(of))] }

// often reports true in one of n cases.
func (g generator) often(n int) bool { return g.IntN(n) == 0 }

// subject is a resource, and an object that both servers take.
type subject struct {
	plural string
	object map[string]any
}

func (g generator) subject() subject {
	object := func(text string) (o map[string]any) {
		if err := json.Unmarshal([]byte(fill(text, nil)), &o); err != nil {
			panic(err)
		}
		return o
	}
	return pick(g,
		subject{plural: "configmaps", object: object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"l":"m"}},"data":{"k":"v"},"immutable":false}`)},
		subject{plural: "widgets", object: object(`{@widget,"metadata":{"name":"a","annotations":{"x":"y"}},"spec":{"color":"blue","replicas":3,"name":"abc","free":{"a":{"b":[1,2]}},"either":5,"ports":[{"name":"x","port":1},{"name":"y"}],"tags":["s","t"],"note":"n"},"status":{"ready":true,"replicas":2}}`)},
		subject{plural: "gadgets", object: object(`{@gadget,"metadata":{"name":"a","finalizers":["e.dev/f"]},"list":[1,{"a":"b"}],"status":{"x":1}}`)},
	)
}

// sequence is a create and some further requests.
func (g generator) sequence() *testCase {
	s := g.subject()
	c := &testCase{owners: true}
	add := func(method, path, contentType string, body any) {
		step := step{method: method, path: path, header: http.Header{}}
		if body != nil {
			doc, err := json.Marshal(body)
			if err != nil {
				panic(err)
			}
			step.body = string(doc)
			step.header.Set("Content-Type", contentType)
		}
		c.steps = append(c.steps, step)
	}
	created := clone(s.object)
	if g.often(2) {
		created = g.mutated(created)
	}
	add(http.MethodPost, s.plural+g.query("fieldManager", "fieldValidation", "dryRun"), "application/json", created)
	for range 1 + g.IntN(4) {
		path := s.plural + "/a" + pick(g, "", "", "", "/status", "/scale")
		switch g.IntN(7) {
		case 0:
			add(http.MethodGet, path+g.query("resourceVersion"), "", nil)
		case 1:
			add(http.MethodDelete, s.plural+"/a"+g.query("dryRun", "propagationPolicy", "gracePeriodSeconds"), "", nil)
		case 2:
			next := g.mutated(clone(s.object))
			if metadata, ok := next["metadata"].(map[string]any); ok && g.often(2) {
				metadata["resourceVersion"] = "$rv"
			}
			add(http.MethodPut, path+g.query("fieldManager", "fieldValidation", "dryRun"), "application/json", next)
		case 3:
			add(http.MethodPatch, path+g.query("fieldManager", "fieldValidation", "dryRun"), string(patchTypes["JSON"]), g.operations(s.object))
		case 4:
			add(http.MethodPatch, path+g.query("fieldManager", "fieldValidation", "dryRun"), string(patchTypes["MERGE"]), g.part(g.mutated(clone(s.object))))
		default:
			applied := g.mutated(clone(s.object))
			if metadata, ok := applied["metadata"].(map[string]any); ok {
				metadata["name"] = "a"
			}
			manager := "?fieldManager=" + pick(g, "m", "n") + pick(g, "", "&force=true")
			add(http.MethodPatch, s.plural+"/a"+pick(g, "", "", "/status")+manager, string(patchTypes["APPLY"]), applied)
		}
	}
	add(http.MethodGet, s.plural+"/a", "", nil)
	return c
}

// query has some of the parameters.
func (g generator) query(names ...string) string {
	values := map[string][]string{
		"fieldManager": {"m", "n"}, "fieldValidation": {"Strict", "Warn", "Ignore", "Perhaps"}, "dryRun": {"All", "", "x"},
		"propagationPolicy": {"Foreground", "Background", "Orphan", "x"}, "gracePeriodSeconds": {"0", "5", "-1", "x"},
		"resourceVersion": {"x", ""}, // 0 may be answered with an old state
	}
	query := url.Values{}
	for _, name := range names {
		if g.often(4) {
			query.Set(name, pick(g, values[name]...))
		}
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
}

// leaf is a place in an object.
type leaf struct {
	parent map[string]any
	key    string
	path   string
}

// leaves are all fields of an object but those that name it.
func leaves(object map[string]any, path string) (all []leaf) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		at := path + "/" + strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
		if at == "/apiVersion" || at == "/kind" || at == "/metadata" || at == "/metadata/name" {
			if child, ok := object[key].(map[string]any); ok {
				all = append(all, leaves(child, at)...)
			}
			continue
		}
		all = append(all, leaf{object, key, at})
		if child, ok := object[key].(map[string]any); ok {
			all = append(all, leaves(child, at)...)
		}
	}
	return all
}

// mutated is an object with a few fields that are gone, new or of another value.
func (g generator) mutated(object map[string]any) map[string]any {
	for range 1 + g.IntN(2) {
		all := leaves(object, "")
		if len(all) == 0 {
			return object
		}
		at := all[g.IntN(len(all))]
		switch g.IntN(4) {
		case 0:
			delete(at.parent, at.key)
		case 1:
			at.parent[pick(g, "new", "spec", "status", "k2")] = g.value()
		default:
			at.parent[at.key] = g.value()
		}
	}
	return object
}

// part is an object without some of its fields.
func (g generator) part(object map[string]any) map[string]any {
	for _, key := range []string{"apiVersion", "kind", "metadata", "spec", "status"} {
		if g.often(2) {
			delete(object, key)
		}
	}
	return object
}

func (g generator) operations(object map[string]any) (all []map[string]any) {
	places := leaves(object, "")
	for range 1 + g.IntN(3) {
		at := places[g.IntN(len(places))].path
		o := map[string]any{"op": pick(g, "add", "remove", "test"), "path": at}
		if o["op"] != "remove" {
			o["value"] = g.value()
		}
		all = append(all, o)
	}
	return all
}

func (g generator) value() any {
	return pick[any](g, nil, "", "v", "red", "abcdefg", 0, 1, 11, -1, 1.5, true, map[string]any{}, map[string]any{"k": "v"},
		map[string]any{"name": "x"}, []any{}, []any{"s", "s"}, []any{map[string]any{"name": "x"}}, []any{1})
}

func clone(object map[string]any) (copied map[string]any) {
	doc, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(doc, &copied)
	}
	if err != nil {
		panic(err)
	}
	return copied
}
