package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/tributary-go/tributary/bench/world"
)

// work is a row of the table of cores, on each number of cores.
type work struct {
	name, what, how string
	objects         int
	shuffled        bool
}

// measureCores prints ours beside client-go's reflector, asked in the same way, where both have 1,
// 2 and 4 cores. The sending server has all cores. Lists come by key, as from an API server, and
// shuffled.
func measureCores(ctx context.Context, s settings) error {
	events := s.events / 4
	fmt.Printf("\n### cores\n\nThe reader has so many cores (`GOMAXPROCS`); %d objects, of a watch %d events over %d. %s.\n\n"+
		"| work | order | cores | ours: wall s | CPU s | client-go: wall s | CPU s | ours / client-go: wall | CPU | 1 core / this, ours | client-go |\n%s|\n",
		s.pods, events, s.eventPods, s.repetitions(), strings.Repeat("|---", 11))
	var worst [2]float64
	for _, w := range []work{
		{"first sync", "sync", "list", s.pods, false},
		{"first sync", "sync", "list", s.pods, true},
		{"first sync", "sync", "watchlist", s.pods, false},
		{"watch", "watch", "watchlist", s.eventPods, true},
	} {
		s.shuffled, s.events = w.shuffled, events
		var alone [2]float64
		for _, cores := range []int{1, 2, 4} {
			if s.cores = cores; cores > runtime.NumCPU() {
				break
			}
			c := scenario{what: w.what, form: world.Protobuf, objects: w.objects, perSet: s.perSet, readers: []reader{{"tributary", w.how}, {"reflector", w.how}}}
			medians, err := c.measure(ctx, s)
			if err != nil {
				return fmt.Errorf("%s, %d cores: %w", w.name, cores, err)
			}
			ours, theirs := medians[0], medians[1]
			if cores == 1 {
				alone = [2]float64{ours.Wall, theirs.Wall}
			}
			order := "by key"
			if w.shuffled {
				order = "shuffled"
			}
			wall, cpu := ours.Wall/theirs.Wall, ours.CPU/theirs.CPU
			fmt.Printf("| %s, %s | %s | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", w.name, w.how, order, cores,
				ours.Wall, ours.CPU, theirs.Wall, theirs.CPU, wall, cpu, alone[0]/ours.Wall, alone[1]/theirs.Wall)
			worst = [2]float64{max(worst[0], wall), max(worst[1], cpu)}
		}
	}
	fmt.Printf("| **worst** | | | | | | | **%.2f** | **%.2f** | | |\n", worst[0], worst[1])
	return nil
}
