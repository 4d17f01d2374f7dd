package suites

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// outcome is what one of their tests did.
type outcome struct {
	name   string
	file   string
	made   string // of ours; empty when it made nothing of ours
	passed bool
	output string
	tries  int // more than 1: it failed, and was run again
}

// maxTries is how often a test is run that depends on the clock.
const maxTries = 3

// failure is why a test fails on ours, and what it says when it does so for that reason.
type failure struct{ reason, says string }

// table is what is known of a suite.
type table struct {
	// elsewhere has the tests, and the files of tests, that make nothing of ours, and what they are
	// about.
	elsewhere map[string]string
	// fails has the tests that run on ours and fail.
	fails map[string]failure
	// timing has the ends of the names of tests that lose a race by no fault of ours on a slow or
	// busy machine, and why. They alone may fail and be run again.
	timing map[string]string
	// passing is how many tests pass on ours, by what they make: fewer is a failure, and more too,
	// lest the record is out of date.
	passing map[string]int
}

// verdict names each way in which the outcomes are not what the table says.
func (t table) verdict(outcomes []outcome) (wrong []string) {
	say := func(format string, arguments ...any) { wrong = append(wrong, fmt.Sprintf(format, arguments...)) }
	passing, used := map[string]int{}, map[string]bool{}
	for _, o := range outcomes {
		listed := o.name
		if _, ok := t.elsewhere[listed]; !ok {
			listed = o.file
		}
		about, elsewhere := t.elsewhere[listed]
		known, fails := t.fails[o.name]
		used[listed], used[o.name] = true, true
		switch {
		case o.made == "" && !elsewhere:
			say("%s made nothing of ours, and is not listed as a test of something else:\n%s", o.name, o.output)
		case o.made != "" && o.name == listed:
			say("%s is listed as a test of %s, and made an %s of ours", o.name, about, o.made)
		case o.made == "": // and passed or not: it says nothing about ours
		case fails && o.passed:
			say("%s passes, and is listed as one that fails (%s)", o.name, known.reason)
		case fails && !strings.Contains(o.output, known.says):
			say("%s fails, but not as listed: it does not say %q:\n%s", o.name, known.says, o.output)
		case o.tries > 1 && !t.isTiming(o.name):
			say("%s failed, and passed when it was run again: it is not listed as one that depends on the clock:\n%s", o.name, o.output)
		case !fails && !o.passed:
			say("%s fails on our %s:\n%s", o.name, o.made, o.output)
		case o.passed:
			passing[o.made]++
		}
	}
	for name := range t.elsewhere {
		if !used[name] {
			say("%s is listed, and there is no such test", name)
		}
	}
	for name := range t.fails {
		if !used[name] {
			say("%s is listed, and there is no such test", name)
		}
	}
	for made, want := range t.passing {
		if passing[made] != want {
			say("%d tests passed on our %s: %d are recorded", passing[made], made, want)
		}
	}
	slices.Sort(wrong)
	return wrong
}

func (t table) isTiming(name string) bool {
	for end := range t.timing {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// TestVerdict: a judge that cannot fail proves nothing.
func TestVerdict(t *testing.T) {
	known := table{
		elsewhere: map[string]string{"heap_test.go": "the heap", "TestMixed": "the heap"},
		fails:     map[string]failure{"TestPanics": {"ours ends", "panic: ours"}},
		timing:    map[string]string{"TestInTime": "it allows 1 ms"},
		passing:   map[string]int{"informer": 2},
	}
	good := []outcome{
		{name: "TestHeap", file: "heap_test.go"},
		{name: "TestMixed", file: "informer_test.go", passed: true},
		{name: "TestPanics", file: "informer_test.go", made: "informer", output: "panic: ours"},
		{name: "TestWatches", file: "informer_test.go", made: "informer", passed: true, tries: 1},
		{name: "TestInTime", file: "informer_test.go", made: "informer", passed: true, tries: 2},
	}
	require.Empty(t, known.verdict(good))
	for want, damage := range map[string]func(o []outcome) []outcome{
		"TestWatches fails on our informer":                      func(o []outcome) []outcome { o[3].passed = false; return o },
		"1 tests passed on our informer: 2 are recorded":         func(o []outcome) []outcome { return o[:4] },
		"TestInTime fails on our informer":                       func(o []outcome) []outcome { o[4].passed = false; return o },
		"TestWatches failed, and passed when it was run again":   func(o []outcome) []outcome { o[3].tries = 2; return o },
		"TestPanics passes, and is listed as one that fails":     func(o []outcome) []outcome { o[2].passed = true; return o },
		"TestPanics fails, but not as listed":                    func(o []outcome) []outcome { o[2].output = "timeout"; return o },
		"TestPanics is listed, and there is no such test":        func(o []outcome) []outcome { return append(o[:2:2], o[3:]...) },
		"heap_test.go is listed, and there is no such test":      func(o []outcome) []outcome { return o[1:] },
		"TestMixed is listed as a test of the heap, and made an": func(o []outcome) []outcome { o[1].made = "indexer"; return o },
		"TestWatches made nothing of ours":                       func(o []outcome) []outcome { o[3].made = ""; return o },
	} {
		require.Contains(t, strings.Join(known.verdict(damage(slices.Clone(good))), "\n"), want)
	}
}
