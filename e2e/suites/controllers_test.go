package suites

import (
	"cmp"
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
func TestControllers(t *testing.T) { judgePeers(t, peers, "TRIBUTARY_CONTROLLERS") }

func judgePeers(t *testing.T, peers map[string]peer, variable string) {
	chosen := strings.Fields(os.Getenv(variable))
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
	first    []string // the packages that run without a variable that chooses
	// lines are those that edits and bothSides change in a program that keeps its go.mod, and in
	// its tests.
	lines [2]int
	rig   func(w *workspace) // makes what its module lacks, and an adopter has
}

// workspace has the program's module, edited to make either side's informers.
func (p peer) workspace(t *testing.T) *workspace {
	w := newWorkspace(t, p.pin)
	w.addSides()
	for _, e := range p.edits {
		w.replace(e.file, e.before, adopted.Replace(e.after))
	}
	w.bothSides()
	if p.pin.own != "" {
		lines, ofTests := w.changed()
		assert.Equal(t, p.lines, [2]int{lines, ofTests}, "lines that an adopter changes, and in tests")
	}
	if p.rig != nil {
		p.rig(w)
	}
	return w
}

// flags are those of the tests' build. The oldest client-go lacks a part of testdata/sides.
func (p peer) flags() []string {
	if strings.HasPrefix(p.pin.own, "v0.35.") {
		return []string{"-ldflags=-s -w", "-tags=clientgo035"}
	}
	return []string{"-ldflags=-s -w"}
}

func (p peer) judge(t *testing.T, packages []string) {
	w := p.workspace(t)
	rows := []string{"| package | equal | with cases | better | worse |", "|---|---|---|---|---|"}
	total := comparison{}
	for _, folder := range packages {
		began := time.Now()
		binary := w.build(folder, p.flags()...)
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
	if p.pin.own != "" {
		p.keepsVersions(w)
	}
	t.Logf("%s: %d tests with %d cases are equal, beside %d that make nothing of ours\n%s",
		w.pin.version, total.equal, total.cases, total.elsewhere, strings.Join(rows, "\n"))
}

// keepsVersions says which requirements of its go.mod ours have raised: not client-go, nor
// controller-runtime.
func (p peer) keepsVersions(w *workspace) {
	before, after := w.requirements(w.source), w.requirements(w.root)
	assert.Equal(w.t, p.pin.own, after["k8s.io/client-go"])
	assert.Equal(w.t, before["sigs.k8s.io/controller-runtime"], after["sigs.k8s.io/controller-runtime"])
	for path, version := range before {
		if after[path] != version {
			w.t.Logf("%s is %s, and was %s", path, cmp.Or(after[path], "gone"), version)
		}
	}
}

// judge runs a package's tests on both sides. Those that differ run again alone, on both sides.
func (s sides) judge(t *testing.T, binary, folder string) (c comparison, wrong []string) {
	ours, theirs := s.run(t, binary, folder, ourSide), s.run(t, binary, folder, theirSide)
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
		names := slices.Sorted(maps.Keys(differ))
		t.Logf("%s: %s runs again alone, on both sides", folder, names)
		for side, results := range map[string]map[string]*result{ourSide: ours, theirSide: theirs} {
			maps.Copy(results, s.run(t, binary, folder, side, names...))
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
