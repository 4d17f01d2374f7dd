package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/tributary-go/tributary/bench/world"
)

// scenario is a measurement with a name: several libraries on one input.
type scenario struct {
	name    string
	what    string
	form    world.Form
	objects int
	perSet  int
	readers []reader
	variant
}

// variant is how a scenario differs from the main ones.
type variant struct {
	rarely  bool // one repetition and fewer events: client-go takes minutes, or it matters less
	indexed bool // either library's copy has two indexes, by namespace and node
	reads   bool // of the copies are measured, too
	handler handling
	kind    string // of the built-in objects, if they are not those of the settings
}

// reader is a library and how it is asked to read. The first one of a scenario is ours; ratios are
// to the best of client-go's.
type reader struct{ library, how string }

func (r reader) String() string { return r.library + ", " + r.how }

func (r reader) isClientGo() bool { return r.library == "reflector" || r.library == "informer" }

var (
	everyone = []reader{{"tributary", "watchlist"}, {"tributary", "list"}, {"tributary-plain", "watchlist"},
		{"reflector", "watchlist"}, {"reflector", "list"}, {"informer", "watchlist"}, {"informer", "list"}}
	notPlain = slices.Concat(everyone[:2], everyone[3:]) // without tributary-plain
	two      = []reader{{"tributary", "watchlist"}, {"reflector", "watchlist"}, {"informer", "watchlist"}}
)

func scenarios(s settings) []scenario {
	return []scenario{
		{"first sync, protobuf", "sync", world.Protobuf, s.pods, s.perSet, everyone, variant{}},
		{"first sync, world.Protobuf, two indexes", "sync", world.Protobuf, s.pods, s.perSet, notPlain, variant{indexed: true}},
		{"first sync, world.Protobuf, 3 pods per ReplicaSet", "sync", world.Protobuf, s.pods, 3, two, variant{rarely: true}},
		{"first sync, JSON", "sync", world.JSON, s.pods, s.perSet, notPlain[:4], variant{rarely: true}},
		{"first sync, unstructured", "sync", world.Tree, s.widgets, s.perSet, notPlain[:4], variant{rarely: true}},
		{"relist, 1 % changed, protobuf", "relist", world.Protobuf, s.pods, s.perSet, two, variant{}},
		{"watch, protobuf", "watch", world.Protobuf, s.eventPods, s.perSet, two, variant{}},
		{"watch, world.Protobuf, two indexes", "watch", world.Protobuf, s.eventPods, s.perSet, two, variant{indexed: true}},
		{"first sync, world.Protobuf, two indexes, pods that differ in more", "sync", world.Protobuf, s.pods, s.perSet, notPlain, variant{kind: world.VariedPod, indexed: true}},
		{"relist, 1 % changed, world.Protobuf, pods that differ in more", "relist", world.Protobuf, s.pods, s.perSet, two, variant{kind: world.VariedPod}},
		{"watch, world.Protobuf, two indexes, pods that differ in more", "watch", world.Protobuf, s.eventPods, s.perSet, two, variant{kind: world.VariedPod, indexed: true}},
		{"watch, JSON", "watch", world.JSON, s.eventPods, s.perSet, two[:2], variant{rarely: true}},
	}
}

// repetitions names the runs that make a figure.
func (s settings) repetitions() string {
	if s.repeat == 1 {
		return "1 repetition"
	}
	return fmt.Sprintf("%d repetitions, medians", s.repeat)
}

// measureAll runs every scenario and prints its table when it is done.
func measureAll(ctx context.Context, s settings) error {
	fmt.Printf("%s, %s/%s, %d CPUs, client-go %s, %s, %s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.NumCPU(), clientGoVersion(), time.Now().Format(time.DateOnly), s.repetitions())
	for _, c := range scenarios(s) {
		if !strings.Contains(c.name, s.only) {
			continue
		}
		s := s
		if c.rarely {
			s.repeat, s.events = (s.repeat+2)/3, s.events/4
		}
		medians, err := c.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		c.print(s, medians)
	}
	if strings.Contains("cores", s.only) {
		if err := measureCores(ctx, s); err != nil {
			return err
		}
	}
	for _, at := range []struct {
		name    string
		measure func(context.Context, settings) error
	}{{"at rest", measureRest}, {"at rest: resident memory", measurePeaks}, {"at rest: few pods", measureFewPods}} {
		if !strings.Contains(at.name, s.only) || s.kind != "" && at.name != "at rest" {
			continue
		}
		if err := at.measure(ctx, s); err != nil {
			return err
		}
	}
	if strings.Contains("kinds", s.only) {
		if err := measureKinds(ctx, s); err != nil {
			return err
		}
	}
	if err := measureInformers(ctx, s); err != nil {
		return err
	}
	if strings.Contains("latency", s.only) {
		if err := measureLatency(ctx, s); err != nil {
			return err
		}
	}
	if !strings.Contains("stores", s.only) {
		return nil
	}
	cmd, err := s.start(ctx, "store")
	if err != nil {
		return err
	}
	cmd.Stdout = os.Stdout
	return cmd.Run()
}

func clientGoVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "k8s.io/client-go" {
				return d.Version
			}
		}
	}
	return "of unknown version"
}

// measure returns, per reader, its medians.
func (c scenario) measure(ctx context.Context, s settings) (medians []figures, err error) {
	s.perSet = c.perSet
	s.pods = c.objects
	if c.kind != "" {
		s.kind = c.kind
	}
	err = s.withServer(ctx, func(ctx context.Context, url string) error {
		medians, err = c.byTurns(s.repeat, func(r reader) (figures, error) {
			if err := post(url + "/reset?form=" + string(c.form)); err != nil {
				return figures{}, err
			}
			return s.read(ctx, reading{URL: url, Library: r.library, How: r.how, Form: c.form, Kind: s.kind, What: c.what, Objects: c.objects, Events: s.events, Cores: s.cores, Indexed: c.indexed, Reads: c.reads, Handler: c.handler})
		})
		return err
	})
	return medians, err
}

// byTurns has each reader read, so that other work falls on all, and returns their medians.
func (c scenario) byTurns(repeat int, read func(reader) (figures, error)) ([]figures, error) {
	all := make([][]figures, len(c.readers))
	for range repeat {
		for i, r := range c.readers {
			f, err := read(r)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r, err)
			}
			all[i] = append(all[i], f)
		}
	}
	medians := make([]figures, len(all))
	for i, of := range all {
		medians[i] = figures{
			Wall: median(of, func(f figures) float64 { return f.Wall }), CPU: median(of, func(f figures) float64 { return f.CPU }),
			Peak: median(of, func(f figures) float64 { return f.Peak }), Live: median(of, func(f figures) float64 { return f.Live }),
			Allocs: median(of, func(f figures) float64 { return f.Allocs }), Hits: of[0].Hits, Objects: of[0].Objects, Rest: restMedians(of),
		}
	}
	return medians, nil
}

// withServer calls use with the address of a server, which it starts and stops.
func (s settings) withServer(ctx context.Context, use func(ctx context.Context, url string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := s.start(ctx, "serve")
	if err != nil {
		return err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { cancel(); _ = server.Wait() }()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return use(ctx, strings.TrimSpace(url))
}

// read runs one measurement in a process of its own.
func (s settings) read(ctx context.Context, r reading) (f figures, err error) {
	what, err := json.Marshal(r)
	if err != nil {
		return f, err
	}
	cmd, err := s.start(ctx, "read", string(what))
	if err != nil {
		return f, err
	}
	cmd.Env = append(cmd.Env, r.env()...)
	return f, output(cmd, &f)
}

func output(cmd *exec.Cmd, into any) error {
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return err
	}
	return json.Unmarshal(out.Bytes(), into)
}

func (c scenario) print(s settings, medians []figures) {
	per, heading, size := c.objects, "object", fmt.Sprintf("%d objects", c.objects)
	if c.what == "watch" {
		per, heading, size = s.events, "event", fmt.Sprintf("%d events over %d objects", s.events, c.objects)
	}
	if c.rarely {
		size += ", " + s.repetitions()
	}
	fmt.Printf("\n### %s (%s)\n\n", c.name, size)
	fmt.Printf("| | wall s | CPU s | CPU us/%s | peak heap MB | live heap B/object | allocs/%s | shared |\n|---|---|---|---|---|---|---|---|\n", heading, heading)
	for i, m := range medians {
		fmt.Printf("| %s | %.2f | %.2f | %.1f | %.0f | %.0f | %.1f | %.0f %% |\n", c.readers[i], m.Wall, m.CPU, m.CPU/float64(per)*1e6, m.Peak/1e6,
			m.Live/float64(c.objects), m.Allocs, 100*m.Hits)
	}
	best := func(of func(figures) float64, mine bool) float64 {
		var values []float64
		for i, r := range c.readers {
			if r.isClientGo() != mine && r.library != "tributary-plain" {
				values = append(values, of(medians[i]))
			}
		}
		return slices.Min(values)
	}
	ratio := func(of func(figures) float64) float64 { return best(of, true) / best(of, false) }
	fmt.Printf("| **best of ours / best of client-go's** | **%.2f** | **%.2f** | | **%.2f** | **%.2f** | **%.2f** | |\n",
		ratio(func(f figures) float64 { return f.Wall }), ratio(func(f figures) float64 { return f.CPU }), ratio(func(f figures) float64 { return f.Peak }),
		ratio(func(f figures) float64 { return f.Live }), ratio(func(f figures) float64 { return f.Allocs }))
}

func median[F any](all []F, of func(F) float64) float64 {
	values := make([]float64, len(all))
	for i, f := range all {
		values[i] = of(f)
	}
	slices.Sort(values)
	return values[len(values)/2]
}
