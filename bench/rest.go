package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// atRest is our library with objects at rest as bytes; coded has a code for texts, too.
const (
	atRest = "packed"
	coded  = "packed-zstd"
)

// restFigures are those of a copy that is synced. Times are in microseconds.
type restFigures struct {
	GC          float64 // CPU of a whole collection by the garbage collector, milliseconds
	HeapObjects float64 // in the heap, per object
	Cold, Hot   float64 // the median of Get
	ColdP99     float64
	All         float64 // per object, of all
	ByIndex     float64 // per object, of all of a namespace
}

// readable is a copy that is read by key, by an index, and as a whole.
type readable interface {
	keys() []string
	get(key string) bool
	all() int
	// indexed adds an index of namespaces, and returns a function that reads the objects of one.
	indexed() (read func(namespace string) int)
}

// inPacked is our copy at rest.
type inPacked[T store.Object] struct {
	store     *packed.Store[T]
	reflector *reflector.Reflector[*store.Encoded]
}

func newPacked[T store.Object](source *listwatch.ListWatch[T], st *packed.Store[T]) *inPacked[T] {
	return &inPacked[T]{st, reflector.New(source.Encoded(), st.Encoded())}
}

func (p *inPacked[T]) run(ctx context.Context)     { _ = p.reflector.Run(ctx) }
func (p *inPacked[T]) version() string             { return p.store.ResourceVersion() }
func (p *inPacked[T]) len() int                    { return p.store.Snapshot().Len() }
func (p *inPacked[T]) shared() float64             { return 0 }
func (p *inPacked[T]) keys() []string              { return slices.Collect(p.store.Snapshot().Keys()) }
func (p *inPacked[T]) get(key string) (found bool) { _, found = p.store.Get(key); return found }
func (p *inPacked[T]) all() (n int)                { return count(p.store.Snapshot()) }

func (p *inPacked[T]) indexed() func(string) int {
	p.store.Closed().AddIndexes(store.ByNamespace[T]())
	return inNamespace(p.store.Snapshot())
}

func (o *ours[T]) keys() []string              { return slices.Collect(o.store.Snapshot().Keys()) }
func (o *ours[T]) get(key string) (found bool) { _, found = o.store.Get(key); return found }
func (o *ours[T]) all() (n int)                { return count(o.store.Snapshot()) }

func (o *ours[T]) indexed() func(string) int {
	o.store.AddIndexes(store.ByNamespace[T]())
	return inNamespace(o.store.Snapshot())
}

func count[T store.Object](s store.Snapshot[T]) (n int) {
	for _, obj := range s.All() {
		n += min(1, len(obj.GetName()))
	}
	return n
}

func inNamespace[T store.Object](s store.Snapshot[T]) func(string) int {
	return func(namespace string) (n int) {
		for obj := range s.InNamespace(namespace) {
			n += min(1, len(obj.GetName()))
		}
		return n
	}
}

func (c clientGoReflector) keys() []string { return c.store.ListKeys() }
func (c clientGoReflector) get(key string) (found bool) {
	_, found, _ = c.store.GetByKey(key)
	return found
}

func (c clientGoReflector) all() int { return countAll(c.store.List()) }

func (c clientGoReflector) indexed() func(string) int {
	err := c.store.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	return func(namespace string) int {
		found, _ := c.store.ByIndex(cache.NamespaceIndex, namespace)
		if err != nil {
			return 0
		}
		return countAll(found)
	}
}

func countAll(objs []any) (n int) {
	for _, obj := range objs {
		n += min(1, len(obj.(metav1.Object).GetName()))
	}
	return n
}

// measureReads reads a copy: many objects once, some again and again, and all.
func measureReads(copy readable, objects int) (f restFigures) {
	const lookups = 3000
	f.GC = micros(func() {
		for range 3 {
			runtime.GC()
		}
	}) / 3000
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	f.HeapObjects = float64(memory.HeapObjects) / float64(max(1, objects))
	keys := copy.keys()
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var times []float64
	for _, key := range keys[:min(lookups, len(keys))] {
		began := time.Now()
		copy.get(key)
		times = append(times, float64(time.Since(began).Nanoseconds())/1000)
	}
	slices.Sort(times)
	f.Cold, f.ColdP99 = times[len(times)/2], times[len(times)*99/100]
	f.Hot = hotRead(copy, keys[:min(100, len(keys))])
	all := 0
	f.All = micros(func() { all = copy.all() })
	f.All /= float64(max(1, all))
	read := copy.indexed()
	found := 0
	f.ByIndex = micros(func() {
		for namespace := range namespaces(keys) {
			found += read(namespace)
		}
	})
	f.ByIndex /= float64(max(1, found))
	return f
}

// hotRead is the median of rounds that read the same few objects.
func hotRead(copy readable, keys []string) float64 {
	const rounds, each = 21, 20_000
	var times []float64
	for range rounds {
		began := time.Now()
		for i := range each {
			copy.get(keys[i%len(keys)])
		}
		times = append(times, float64(time.Since(began).Nanoseconds())/1000/each)
	}
	slices.Sort(times)
	return times[rounds/2]
}

func namespaces(keys []string) map[string]bool {
	of := map[string]bool{}
	for _, key := range keys {
		namespace, _, _ := strings.Cut(key, "/")
		of[namespace] = true
	}
	return of
}

// micros is the CPU time of the process during work.
func micros(work func()) float64 {
	began := cpu()
	work()
	return float64((cpu() - began).Microseconds())
}

func restMedians(of []figures) (m restFigures) {
	value := func(get func(restFigures) float64) float64 {
		return median(of, func(f figures) float64 { return get(f.Rest) })
	}
	return restFigures{
		GC: value(func(f restFigures) float64 { return f.GC }), HeapObjects: value(func(f restFigures) float64 { return f.HeapObjects }),
		Cold: value(func(f restFigures) float64 { return f.Cold }), Hot: value(func(f restFigures) float64 { return f.Hot }),
		ColdP99: value(func(f restFigures) float64 { return f.ColdP99 }), All: value(func(f restFigures) float64 { return f.All }),
		ByIndex: value(func(f restFigures) float64 { return f.ByIndex }),
	}
}

// restKind is a row of the tables.
type restKind struct {
	name, kind string
	form       world.Form
	perSet     int
	share      int  // of the settings' number of pods: 1/share
	handled    bool // its events are measured with handlers
	library    string
}

var restKinds = []restKind{
	{"pods, 50 per owner", "", world.Protobuf, 50, 1, true, atRest},
	{"pods, 3 per owner", "", world.Protobuf, 3, 5, false, atRest},
	{"pods that differ in more", world.VariedPod, world.Protobuf, 50, 5, true, atRest},
	{"pods of random strings", "Pod of random strings", world.Protobuf, 50, 5, false, atRest},
	{"custom resources, JSON", "", world.Tree, 50, 5, true, atRest},
	{"Leases", "Lease", world.Protobuf, 50, 5, false, atRest},
	{"ConfigMaps of text, 20 KB", "ConfigMap of text", world.Protobuf, 50, 25, true, atRest},
	{"the same, zstd", "ConfigMap of text", world.Protobuf, 50, 25, true, coded},
	{"Secrets of text, 4 KB", "Secret of text", world.Protobuf, 50, 10, false, atRest},
	{"Secrets of PEM, 4 KB", "Secret of PEM", world.Protobuf, 50, 10, false, atRest},
	{"Secrets, random, 4 KB", "Secret", world.Protobuf, 50, 10, false, atRest},
	{"pods as of kubernetes#141683", "Pod as of kubernetes#141683", world.Protobuf, 50, 5, false, atRest},
	{"pods as of kubernetes#141341, JSON", world.TreePod, world.Tree, 50, 16, false, atRest},
}

// restRow has the figures of a kind, by the measurement: packed, interned, and of client-go.
type restRow struct {
	restKind
	objects, events int
	of              map[string][]figures
}

// measureRest prints the size of a copy at rest as bytes, interned and in client-go, and the cost
// to fill, to follow and to read each.
func measureRest(ctx context.Context, s settings) error {
	var rows []restRow
	var failed error
	for _, k := range restKinds {
		if s.kind != "" && s.kind != k.name {
			continue
		}
		row, err := s.measureRestOf(ctx, k)
		if err != nil {
			failed = fmt.Errorf("%s: %w", k.name, err)
			break
		}
		fmt.Fprintln(os.Stderr, "bench:", time.Now().Format(time.TimeOnly), k.name)
		rows = append(rows, row)
	}
	s.printRest(rows)
	return failed
}

func (s settings) measureRestOf(ctx context.Context, k restKind) (restRow, error) {
	s.kind = k.kind
	s.pods = max(100, s.pods/k.share)
	s.widgets, s.eventPods = s.pods, min(s.pods, 10_000)
	s.events = min(s.events, 4*s.eventPods)
	row := restRow{k, s.pods, s.events, map[string][]figures{}}
	measurements := []string{"sync", "relist", "watch"}
	if k.handled {
		measurements = append(measurements, string(byKey), string(byMetadata), string(wholly))
	}
	for i, what := range measurements {
		c := scenario{what: what, form: k.form, objects: s.pods, perSet: k.perSet, variant: variant{reads: what == "sync"},
			readers: []reader{{k.library, "watchlist"}, {"tributary", "watchlist"}, {"reflector", "watchlist"}}}
		if i > 2 {
			c.what, c.handler = "watch", handling(what)
		}
		if c.what == "watch" {
			c.objects = s.eventPods
		}
		medians, err := c.measure(ctx, s)
		if err != nil {
			return row, fmt.Errorf("%s: %w", what, err)
		}
		row.of[what] = medians
	}
	return row, nil
}

// three are the cells of packed, interned and client-go; empty if it was not measured.
func (r restRow) three(what, format string, of func(figures) float64) string {
	var b strings.Builder
	for i := range 3 {
		if r.of[what] == nil {
			b.WriteString(" |")
		} else {
			fmt.Fprintf(&b, " "+format+" |", of(r.of[what][i]))
		}
	}
	return b.String()
}

// ratio is the cell of packed to another one.
func (r restRow) ratio(what string, to int, of func(figures) float64) string {
	if r.of[what] == nil {
		return " |"
	}
	return fmt.Sprintf(" %.3f |", of(r.of[what][0])/of(r.of[what][to]))
}

// restColumn is three columns, of packed, interned and client-go.
type restColumn struct {
	heading, what, format string
	of                    func(restRow, figures) float64
	to                    int // packed to this one is a further column: 1 is interned, 2 client-go
}

var restTables = []struct {
	name, note string
	columns    []restColumn
}{
	{"at rest: heap and first sync", "The heap of one copy, and the CPU time of its process. Bytes are per object, and the CPU in us per object.", []restColumn{
		{"live B", "sync", "%.0f", func(r restRow, f figures) float64 { return f.Live / float64(r.objects) }, 2},
		{"peak B", "sync", "%.0f", func(r restRow, f figures) float64 { return f.Peak / float64(r.objects) }, 0},
		{"CPU us", "sync", "%.1f", func(r restRow, f figures) float64 { return f.CPU / float64(r.objects) * 1e6 }, 1},
		{"GC ms", "sync", "%.1f", func(_ restRow, f figures) float64 { return f.Rest.GC }, 2},
		{"heap objects", "sync", "%.1f", func(_ restRow, f figures) float64 { return f.Rest.HeapObjects }, 0},
	}},
	{"at rest: changes", "CPU in us, per object of a relist with 1 % changed, and per event. The handlers read the key, the labels of the new object, and the objects before and after.", []restColumn{
		{"relist", "relist", "%.1f", func(r restRow, f figures) float64 { return f.CPU / float64(r.objects) * 1e6 }, 1},
		{"no handler", "watch", "%.1f", perEvent, 0},
		{"key", string(byKey), "%.1f", perEvent, 1},
		{"labels", string(byMetadata), "%.1f", perEvent, 1},
		{"before and after", string(wholly), "%.1f", perEvent, 1},
	}},
	{"at rest: reads", "Get in us of the clock; by index and all in us of CPU per object.", []restColumn{
		{"Get, cold", "sync", "%.1f", func(_ restRow, f figures) float64 { return f.Rest.Cold }, 0},
		{"cold p99", "sync", "%.1f", func(_ restRow, f figures) float64 { return f.Rest.ColdP99 }, 0},
		{"hot", "sync", "%.3f", func(_ restRow, f figures) float64 { return f.Rest.Hot }, 1},
		{"by index", "sync", "%.2f", func(_ restRow, f figures) float64 { return f.Rest.ByIndex }, 0},
		{"all", "sync", "%.2f", func(_ restRow, f figures) float64 { return f.Rest.All }, 0},
	}},
}

func perEvent(r restRow, f figures) float64 { return f.CPU / float64(r.events) * 1e6 }

func (s settings) printRest(rows []restRow) {
	for _, t := range restTables {
		fmt.Printf("\n### %s\n\n%s %s.\n\n| kind, objects |", t.name, t.note, s.repetitions())
		columns := 1
		for _, c := range t.columns {
			fmt.Printf(" %s: packed | interned | client-go |", c.heading)
			if columns += 3; c.to > 0 {
				fmt.Printf(" to %s |", []string{"", "interned", "client-go"}[c.to])
				columns++
			}
		}
		fmt.Println("\n" + strings.Repeat("|---", columns) + "|")
		for _, r := range rows {
			fmt.Printf("| %s, %d |", r.name, r.objects)
			for _, c := range t.columns {
				of := func(f figures) float64 { return c.of(r, f) }
				fmt.Print(r.three(c.what, c.format, of))
				if c.to > 0 {
					fmt.Print(r.ratio(c.what, c.to, of))
				}
			}
			fmt.Println()
		}
	}
}
