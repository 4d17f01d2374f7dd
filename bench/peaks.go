package main

import (
	"context"
	"fmt"

	"github.com/tributary-go/tributary/bench/world"
)

// peaks are the rows of the table of resident memory: of so many times the settings' pods, the
// stores and how they are filled.
var peaks = []struct {
	share   float64
	readers []reader
}{
	{1.76, []reader{{atRest, "watchlist"}, {atRest, "list"}, {"tributary", "watchlist"}, {"reflector", "watchlist"}}},
	{10, []reader{{atRest, "watchlist"}, {atRest, "list"}}},
}

// measurePeaks prints the resident memory of processes until their copy of many pods is complete.
func measurePeaks(ctx context.Context, s settings) error {
	fmt.Print("\n### at rest: resident memory\n\nMiB of a process until its copy of pods, 50 of an owner, is complete; once each. " +
		"*RSS* is the peak (VmHWM), and *before* what the process had before it read. *Peak heap* is of its objects, dead ones included.\n\n" +
		"| pods | store | by | RSS | before | peak heap | live heap | the rest | CPU s |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range peaks {
		some := s
		some.pods, some.perSet = int(float64(s.pods)*p.share), 50
		err := some.withServer(ctx, func(ctx context.Context, url string) error {
			for _, r := range p.readers {
				if err := some.printPeak(ctx, url, r); err != nil {
					return fmt.Errorf("%d pods, %s: %w", some.pods, r, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s settings) printPeak(ctx context.Context, url string, r reader) error {
	if err := post(url + "/reset?form=" + string(world.Protobuf)); err != nil {
		return err
	}
	f, err := s.read(ctx, reading{URL: url, Library: r.library, How: r.how, Form: world.Protobuf, What: "sync", Objects: s.pods})
	if err != nil {
		return err
	}
	const MiB = 1 << 20
	fmt.Printf("| %d | %s | %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f |\n", s.pods, r.library, r.how,
		f.RSS/MiB, f.Bare/MiB, f.Peak/MiB, f.Live/MiB, (f.RSS-f.Bare-f.Peak)/MiB, f.CPU)
	return nil
}
