package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// atRest is our library with objects at rest as bytes.
const atRest = "packed"

// restFigures are those of a copy that is synced. Times are in microseconds.
type restFigures struct {
	GC          float64 // CPU of a whole collection by the garbage collector, milliseconds
	HeapObjects float64 // in the heap, per object
	Cold, Hot   float64 // the median of Get
	ColdP99     float64
	All         float64 // per object, of all
}

// readable is a copy that is read by key, and as a whole.
type readable interface {
	keys() []string
	get(key string) bool
	all() int
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

func (o *ours[T]) keys() []string              { return slices.Collect(o.store.Snapshot().Keys()) }
func (o *ours[T]) get(key string) (found bool) { _, found = o.store.Get(key); return found }
func (o *ours[T]) all() (n int)                { return count(o.store.Snapshot()) }

func count[T store.Object](s store.Snapshot[T]) (n int) {
	for _, obj := range s.All() {
		n += min(1, len(obj.GetName()))
	}
	return n
}

func (c clientGoReflector) keys() []string { return c.store.ListKeys() }
func (c clientGoReflector) get(key string) (found bool) {
	_, found, _ = c.store.GetByKey(key)
	return found
}

func (c clientGoReflector) all() (n int) {
	for _, obj := range c.store.List() {
		if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
			n += min(1, len(key))
		}
	}
	return n
}

// measureReads reads a copy: many objects once, and one again and again.
func measureReads(copy readable, objects int) (f restFigures) {
	const lookups = 3000
	began := cpu()
	for range 3 {
		runtime.GC()
	}
	f.GC = float64((cpu() - began).Microseconds()) / 3000
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
	hot := time.Now()
	for range lookups {
		copy.get(keys[0])
	}
	f.Hot = float64(time.Since(hot).Nanoseconds()) / 1000 / lookups
	began = cpu()
	f.All = float64(copy.all())
	f.All = float64((cpu() - began).Microseconds()) / f.All
	return f
}

func restMedians(of []figures) (m restFigures) {
	value := func(get func(restFigures) float64) float64 {
		return median(of, func(f figures) float64 { return get(f.Rest) })
	}
	return restFigures{
		GC: value(func(f restFigures) float64 { return f.GC }), HeapObjects: value(func(f restFigures) float64 { return f.HeapObjects }),
		Cold: value(func(f restFigures) float64 { return f.Cold }), Hot: value(func(f restFigures) float64 { return f.Hot }),
		ColdP99: value(func(f restFigures) float64 { return f.ColdP99 }), All: value(func(f restFigures) float64 { return f.All }),
	}
}

// restKind is a row of the tables.
type restKind struct {
	name, kind string
	form       form
	perSet     int
	share      int // of the settings' number of pods: 1/share
}

var restKinds = []restKind{
	{"pods, 50 per owner", "", protobuf, 50, 1},
	{"pods, 3 per owner", "", protobuf, 3, 5},
	{"pods that differ in more", world.VariedPod, protobuf, 50, 5},
	{"pods of random strings", "Pod of random strings", protobuf, 50, 5},
	{"custom resources, JSON", "", tree, 50, 5},
	{"Leases", "Lease", protobuf, 50, 5},
	{"ConfigMaps", "ConfigMap", protobuf, 50, 50},
	{"Secrets, random", "Secret", protobuf, 50, 5},
}

// measureRest prints what a copy takes at rest as bytes, interned and in client-go, and what each
// costs to fill, to follow and to read.
func measureRest(ctx context.Context, s settings) error {
	readers := []reader{{atRest, "watchlist"}, {"tributary", "watchlist"}, {"reflector", "watchlist"}}
	const columns = "| kind | objects | store | live B/object | to client-go | sync: CPU us | peak B | relist: CPU us | watch: CPU us/event | GC ms | heap objects | Get cold us | p99 | hot us | all, us/object |\n"
	fmt.Printf("\n### at rest\n\nThe heap of one copy, and the CPU time of its process. A relist has 1 %% changed. %s.\n\n%s%s|\n", s.repetitions(), columns, strings.Repeat("|---", 15))
	for _, k := range restKinds {
		if s.kind != "" && s.kind != k.name {
			continue
		}
		if err := s.measureRestOf(ctx, k, readers); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return s.printFew(ctx)
}

func (s settings) measureRestOf(ctx context.Context, k restKind, readers []reader) error {
	s.kind = k.kind
	s.pods = max(100, s.pods/k.share)
	s.widgets, s.eventPods = s.pods, min(s.pods, 10_000)
	s.events = min(s.events, 4*s.eventPods)
	of := map[string][]figures{}
	for _, what := range []string{"sync", "relist", "watch"} {
		c := scenario{what: what, form: k.form, objects: s.pods, perSet: k.perSet, readers: readers, variant: variant{reads: what == "sync"}}
		if what == "watch" {
			c.objects = s.eventPods
		}
		medians, err := c.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		of[what] = medians
	}
	theirs := of["sync"][len(readers)-1]
	for i, r := range readers {
		sync, relist, watch := of["sync"][i], of["relist"][i], of["watch"][i]
		n := float64(s.pods)
		fmt.Printf("| %s | %d | %s | %.0f | %.3f | %.1f | %.0f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.2f | %.2f |\n", k.name, s.pods, r.library,
			sync.Live/n, sync.Live/theirs.Live, sync.CPU/n*1e6, sync.Peak/n, relist.CPU/n*1e6, watch.CPU/float64(s.events)*1e6,
			sync.Rest.GC, sync.Rest.HeapObjects, sync.Rest.Cold, sync.Rest.ColdP99, sync.Rest.Hot, sync.Rest.All)
	}
	return nil
}
