package suites

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestControllers runs the tests of Kubernetes' own controllers, and of programs like them, on our
// informers and on client-go's. TRIBUTARY_CONTROLLERS has the packages to run, or "all".
func TestControllers(t *testing.T) {
	chosen := strings.Fields(os.Getenv("TRIBUTARY_CONTROLLERS"))
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		p := peers[name]
		var packages []string
		for _, folder := range slices.Sorted(maps.Keys(p.packages)) {
			if slices.Contains(chosen, folder) || slices.Contains(chosen, "all") ||
				len(chosen) == 0 && slices.Contains(p.first, folder) {
				packages = append(packages, folder)
			}
		}
		if len(packages) > 0 {
			t.Run(name, func(t *testing.T) { p.judge(t, packages) })
		}
	}
}

// peer is a program whose tests run on both sides.
type peer struct {
	pin      pin
	edits    []edit
	packages map[string]sides
	first    []string // the packages that run without TRIBUTARY_CONTROLLERS
}

func (p peer) judge(t *testing.T, packages []string) {
	w := newWorkspace(t, p.pin)
	w.addSides()
	for _, e := range p.edits {
		w.replace(e.file, e.before, e.after)
	}
	w.bothSides()
	rows := []string{"| package | equal | with cases | better | worse |", "|---|---|---|---|---|"}
	total := comparison{}
	for _, folder := range packages {
		began := time.Now()
		binary := w.build(folder, "-ldflags=-s -w")
		built := time.Since(began).Round(time.Second)
		began = time.Now()
		c, wrong := p.packages[folder].judge(t, binary, w.file(folder))
		t.Logf("%s: built in %s, run in %s; %d tests make nothing of ours; better: %v; worse: %v; failing on both: %v",
			folder, built, time.Since(began).Round(time.Second), c.elsewhere, c.better, c.worse, c.neither)
		rows = append(rows, fmt.Sprintf("| `%s` | %d | %d | %d | %d |", folder, c.equal, c.cases, len(c.better), len(c.worse)))
		assert.Empty(t, wrong, "%s\n%s", folder, strings.Join(wrong, "\n"))
		total.equal, total.cases, total.elsewhere = total.equal+c.equal, total.cases+c.cases, total.elsewhere+c.elsewhere
		require.NoError(t, os.Remove(binary))
	}
	t.Logf("%s: %d tests with %d cases are equal, beside %d that make nothing of ours\n%s",
		w.pin.version, total.equal, total.cases, total.elsewhere, strings.Join(rows, "\n"))
}

// judge runs a package's tests on both sides. Those that differ run again alone, on both sides.
func (s sides) judge(t *testing.T, binary, folder string) (c comparison, wrong []string) {
	ours, theirs := runSide(t, binary, folder, ourSide), runSide(t, binary, folder, theirSide)
	again := map[string]bool{}
	for try := 1; ; try++ {
		c = compare(ours, theirs)
		differ := map[string]bool{}
		for _, name := range append(slices.Clone(c.better), c.worse...) {
			if test := testOf(name); s.worse[name] == "" && s.worse[test] == "" {
				differ[test] = true
			}
		}
		if try == maxTries || len(differ) == 0 {
			break
		}
		maps.Copy(again, differ)
		names := "^(" + strings.Join(slices.Sorted(maps.Keys(differ)), "|") + ")$"
		t.Logf("%s: %s runs again alone, on both sides", folder, names)
		for side, results := range map[string]map[string]*result{ourSide: ours, theirSide: theirs} {
			maps.Copy(results, runSide(t, binary, folder, side, "-test.run", names))
		}
	}
	wrong = s.verdict(c, ours)
	for name := range again {
		if s.unsteady[name] == "" && ours[name] != nil && ours[name].passed && theirs[name].passed {
			wrong = append(wrong, name+" failed on one side, and passed alone: it is not listed as unsteady")
		}
	}
	return c, wrong
}
