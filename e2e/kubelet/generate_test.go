package kubelet_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// generator makes manifests that are nearly good: those of the corpus and of testdata, which has
// what is rare, with parts of each other, parts left out, parts that the types have and the corpus
// does not, and values that somebody may have got wrong.
type generator struct {
	random *rand.Rand
	texts  [][]byte         // the corpus
	pods   []map[string]any // what of it is an object
	parts  map[string][]any // what stands under each name in it
}

func newGenerator(t *testing.T, seed uint64) *generator {
	g := &generator{random: rand.New(rand.NewPCG(seed, 0)), parts: map[string][]any{}}
	more, err := filepath.Glob("testdata/*")
	require.NoError(t, err)
	require.NotEmpty(t, more)
	for _, path := range append(corpus(t), more...) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if len(data) > 1<<16 {
			continue // about size alone
		}
		g.texts = append(g.texts, data)
		var pod map[string]any
		if yaml.Unmarshal(data, &pod) == nil && pod["spec"] != nil {
			g.pods = append(g.pods, pod)
			g.harvest(pod)
		}
	}
	return g
}

// corpus is the manifests whose outcome is recorded.
func corpus(t *testing.T) []string {
	paths, err := filepath.Glob("../../sources/manifest/testdata/manifests/*")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

func (g *generator) harvest(node any) {
	switch node := node.(type) {
	case map[string]any:
		for _, name := range sorted(node) {
			g.parts[name] = append(g.parts[name], node[name])
			g.harvest(node[name])
		}
	case []any:
		for _, element := range node {
			g.harvest(element)
		}
	}
}

func sorted(m map[string]any) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// manifest is the next one.
func (g *generator) manifest() []byte {
	if g.random.IntN(8) == 0 {
		return g.text()
	}
	pod := clone(g.pods[g.random.IntN(len(g.pods))]).(map[string]any)
	for range 1 + g.random.IntN(1+g.random.IntN(4)) {
		g.change(pod)
	}
	data, err := json.Marshal(pod)
	if err != nil {
		panic(err) // of values that came from YAML
	}
	if g.random.IntN(4) == 0 {
		if data, err = yaml.JSONToYAML(data); err != nil {
			panic(err)
		}
	}
	return data
}

func clone(node any) any {
	switch node := node.(type) {
	case map[string]any:
		c := make(map[string]any, len(node))
		for name, value := range node {
			c[name] = clone(value)
		}
		return c
	case []any:
		c := make([]any, len(node))
		for i, value := range node {
			c[i] = clone(value)
		}
		return c
	}
	return node
}

// text is a manifest that was edited as a text: a line or a byte is lost, doubled or replaced.
func (g *generator) text() []byte {
	data := slices.Clone(g.texts[g.random.IntN(len(g.texts))])
	for range 1 + g.random.IntN(2) {
		if len(data) == 0 {
			break
		}
		at := g.random.IntN(len(data))
		switch g.random.IntN(4) {
		case 0:
			data = slices.Delete(data, at, at+1)
		case 1:
			const bytes = "\x00\t\n\r \"#%&'*,-/0159:>?@AZ[\\]`afnyz{|}~\x7f\x80\xff"
			data[at] = bytes[g.random.IntN(len(bytes))]
		case 2:
			lines := strings.SplitAfter(string(data), "\n")
			i := g.random.IntN(len(lines))
			lines = slices.Delete(lines, i, i+1)
			data = []byte(strings.Join(lines, ""))
		case 3:
			lines := strings.SplitAfter(string(data), "\n")
			i, j := g.random.IntN(len(lines)), g.random.IntN(len(lines))
			lines = slices.Insert(lines, i, lines[j])
			data = []byte(strings.Join(lines, ""))
		}
	}
	return data
}

// change makes one change somewhere in a pod.
func (g *generator) change(pod map[string]any) {
	if g.random.IntN(3) == 0 {
		g.grow(pod)
		return
	}
	var places []func() // one for each value in it
	var visit func(node any)
	visit = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			for _, name := range sorted(node) {
				places = append(places, func() { g.member(node, name) })
				visit(node[name])
			}
		case []any:
			for i := range node {
				places = append(places, func() { node[i] = g.value("", node[i]) })
				visit(node[i])
			}
		}
	}
	visit(pod)
	places[g.random.IntN(len(places))]()
}

func (g *generator) member(of map[string]any, name string) {
	switch g.random.IntN(4) {
	case 0:
		delete(of, name)
	case 1:
		if list, ok := of[name].([]any); ok && len(list) > 0 {
			of[name] = append(list, clone(list[g.random.IntN(len(list))]))
			return
		}
		fallthrough
	default:
		of[name] = g.value(name, of[name])
	}
}

// value is another value for what is called name.
func (g *generator) value(name string, was any) any {
	if known := g.parts[name]; len(known) > 0 && g.random.IntN(2) == 0 {
		return clone(known[g.random.IntN(len(known))])
	}
	switch was := was.(type) {
	case string:
		return g.string(name)
	case bool:
		return !was
	case float64, int64:
		return g.number()
	case nil:
		return g.string(name)
	}
	switch g.random.IntN(6) {
	case 0:
		return nil
	case 1:
		return map[string]any{}
	case 2:
		return []any{}
	case 3:
		return g.string(name)
	case 4:
		return g.number()
	}
	return was
}

func (g *generator) number() any {
	numbers := []any{0, 1, -1, 2, 3, 7, 8, 22, 60, 80, 100, 101, 255, 256, 300, 420, 511, 512, 1000, 1001, 8080, 65535, 65536, 86400, 1 << 31, -1 << 31, 1<<31 - 1, 1 << 53, 0.5, 1.5, 1e3}
	return numbers[g.random.IntN(len(numbers))]
}

func (g *generator) string(name string) string {
	if known := g.parts[name]; len(known) > 0 && g.random.IntN(2) == 0 {
		if text, ok := known[g.random.IntN(len(known))].(string); ok {
			return text
		}
	}
	return words[g.random.IntN(len(words))]
}

// words are values of all kinds of fields, right and wrong.
var words = []string{
	"", "a", "b", "web", "data", "Web", "web_1", "web.example", "-web", "web-", "a/b", "example.com/a", "example.com/A_b.c", "kubernetes.io/os", "/", "/data", "data/sub",
	"../data", "/data/../etc", "/data:ro", "./x", "C:\\data", "$(VAR)", "VAR", "1VAR", "VAR-1", "a=b", "100m", "1Gi", "0", "-1", "1.5", "1e3", "100Ki", "1", "0.0001", "10%", "101%",
	"80", "http", "HTTP", "HTTPS", "TCP", "UDP", "SCTP", "tcp", "Always", "Never", "OnFailure", "IfNotPresent", "Recreate", "Memory", "HugePages", "HugePages-2Mi", "hugepages-2Mi",
	"cpu", "memory", "ephemeral-storage", "example.com/gpu", "pods", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None", "linux", "windows", "Linux", "127.0.0.1", "10.0.0.256", "::1", "fd00::1",
	"NoSchedule", "NoExecute", "PreferNoSchedule", "Exists", "Equal", "In", "NotIn", "DoesNotExist", "Gt", "Lt", "DoNotSchedule", "ScheduleAnyway", "Honor", "Ignore", "kubernetes.io/hostname",
	"Bidirectional", "HostToContainer", "DirectoryOrCreate", "File", "Socket", "CharDevice", "ReadWriteOnce", "ReadWriteMany", "Block", "Filesystem", "Unmasked", "RuntimeDefault", "Localhost", "Unconfined",
	"NET_ADMIN", "ALL", "s0:c1,c2", "net.ipv4.tcp_syncookies", "kernel.msgmax", "net..x", "SIGTERM", "SIGKILL", "FallbackToLogsOnError", "metadata.name", "metadata.labels['a']", "metadata.annotations",
	"status.podIP", "spec.nodeName", "limits.cpu", "requests.memory", "limits.hugepages-2Mi", "v1", "v2", "NotRequired", "RestartContainer", "OnDelete", "Shared", "User", "Kubernetes", "default-scheduler",
	"system-node-critical", "node-1", "kube-system", "1.2.3.4/24", "2026-11-21T00:00:00Z", "00000000-0000-4000-8000-000000000000", "nginx:1", " nginx", "nginx ", "Nginx:Latest", "x:::",
	strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a.", 126) + "a", strings.Repeat("a", 254), "é", "a\nb", "a b", "a\x00b", "true", "null", "~",
}

// grow sets one field that the types have, somewhere in the pod, whether or not the corpus has it.
func (g *generator) grow(pod map[string]any) {
	node, t := pod, reflect.TypeFor[corev1.Pod]()
	for depth := 0; ; depth++ {
		field := g.fieldOf(t, depth == 0)
		name, of := field.name, field.of
		elements := false
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8 {
			elements = elements || of.Kind() == reflect.Slice
			of = of.Elem()
		}
		deeper := of.Kind() == reflect.Struct && of.NumField() > 0 && !opaque(of) && depth < 8
		below, there := g.existing(node[name])
		if !deeper || !there && g.random.IntN(2) == 0 {
			value := g.fill(name, field.of, 3)
			if list, ok := node[name].([]any); ok && elements && g.random.IntN(2) == 0 {
				if more, ok := value.([]any); ok {
					value = append(list, more...)
				}
			}
			node[name] = value
			return
		}
		if !there {
			below = map[string]any{}
			node[name] = any(below)
			if elements {
				node[name] = []any{below}
			}
		}
		node, t = below, of
	}
}

// existing is the object, or one of the list, that is there.
func (g *generator) existing(value any) (map[string]any, bool) {
	if list, ok := value.([]any); ok && len(list) > 0 {
		value = list[g.random.IntN(len(list))]
	}
	object, ok := value.(map[string]any)
	return object, ok
}

// typed is a member that a type has.
type typed struct {
	name string
	of   reflect.Type
}

// opaque types are written as a value, whatever their fields are.
func opaque(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
}

func fieldsOf(t reflect.Type) (all []typed) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Type.Kind() == reflect.Struct:
			all = append(all, fieldsOf(f.Type)...)
		case name != "":
			all = append(all, typed{name, f.Type})
		}
	}
	return all
}

// fieldOf is a field of a struct; of a pod mostly its spec.
func (g *generator) fieldOf(t reflect.Type, pod bool) typed {
	all := fieldsOf(t)
	if pod && g.random.IntN(6) > 0 {
		return all[slices.IndexFunc(all, func(f typed) bool { return f.name == "spec" })]
	}
	return all[g.random.IntN(len(all))]
}

// fill makes a value of a type; what is called the same in the corpus is a good one.
func (g *generator) fill(name string, t reflect.Type, depth int) any {
	if known := g.parts[name]; len(known) > 0 && g.random.IntN(3) > 0 {
		return clone(known[g.random.IntN(len(known))])
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.fill(name, t.Elem(), depth)
	case reflect.Bool:
		return g.random.IntN(2) == 0
	case reflect.Int32, reflect.Int64, reflect.Int:
		return g.number()
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "aGVsbG8="
		}
		list := []any{}
		for range g.random.IntN(3) {
			list = append(list, g.fill(name, t.Elem(), depth-1))
		}
		return list
	case reflect.Map:
		m := map[string]any{}
		for range g.random.IntN(3) {
			m[g.string(name)] = g.fill(name, t.Elem(), depth-1)
		}
		return m
	case reflect.Struct:
		if opaque(t) {
			if g.random.IntN(3) == 0 {
				return g.number()
			}
			return g.string(name)
		}
		m := map[string]any{}
		all := fieldsOf(t)
		for _, f := range all {
			if depth > 0 && g.random.IntN(max(2, len(all)/2)) == 0 {
				m[f.name] = g.fill(f.name, f.of, depth-1)
			}
		}
		return m
	}
	return g.string(name)
}
