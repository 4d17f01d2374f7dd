package suites

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// result is what a test, or one of its subtests, did on one side.
type result struct {
	passed bool
	made   int // informers of ours, which are counted at the test
	output string
}

// run runs a package's tests on one side, all or only some.
func (s sides) run(t *testing.T, binary, folder, side string, only ...string) map[string]*result {
	t.Helper()
	if s.ginkgo {
		return runSideSpecs(t, binary, folder, side, only)
	}
	if len(only) == 0 {
		return runSide(t, binary, folder, side)
	}
	return runSide(t, binary, folder, side, "-test.run", "^("+strings.Join(only, "|")+")$")
}

// runSideSpecs runs a suite of Ginkgo. Which spec made a cache is not in its report, but that the
// suite did is.
func runSideSpecs(t *testing.T, binary, folder, side string, only []string) map[string]*result {
	t.Helper()
	var focus []string
	for _, name := range only {
		focus = append(focus, "-ginkgo.focus", strings.ReplaceAll(regexp.QuoteMeta(name), slash, "/"))
	}
	outcomes, printed := runSpecs(t, binary, folder, append(assets(t), "TRIBUTARY_SIDE="+side), focus...)
	require.Equal(t, side == ourSide, strings.Contains(printed, made+"informer"), "%s", printed)
	results := map[string]*result{}
	for _, o := range outcomes {
		if !strings.HasPrefix(o.output, "skipped:") && !strings.HasPrefix(o.output, "pending:") {
			results[strings.ReplaceAll(o.name, "/", slash)] = &result{passed: o.passed, made: 1, output: o.output}
		}
	}
	return results
}

// slash is in the name of a spec, which has no subtests.
const slash = "∕"

// maxProcesses is how often the process of a package's tests may end before they do.
const maxProcesses = 8

// runSide runs the tests of a binary on one side, in the folder of their package. If the process
// ends before all have run, another one runs the rest.
func runSide(t *testing.T, binary, folder, side string, arguments ...string) map[string]*result {
	t.Helper()
	all := map[string]*result{}
	for range maxProcesses {
		var done []string
		for name := range all {
			if testOf(name) == name {
				done = append(done, name)
			}
		}
		skip := "^$"
		if len(done) > 0 {
			skip = "^(" + strings.Join(done, "|") + ")$"
		}
		command := exec.CommandContext(t.Context(), "go", append([]string{"tool", "test2json", binary, "-test.v=test2json",
			"-test.timeout", "10m", "-test.skip", skip}, arguments...)...)
		command.Dir = folder
		command.Env = append(os.Environ(), "GOFLAGS=", "TRIBUTARY_SIDE="+side)
		out, err := command.Output()
		if failed := (*exec.ExitError)(nil); err != nil {
			require.ErrorAs(t, err, &failed)
		}
		ran, whole := readResults(t, out)
		maps.Copy(all, ran)
		if whole {
			return all
		}
		require.NotEmpty(t, ran, "%s ends before its first test: %s", binary, out)
	}
	require.Fail(t, "the process ends too often", "%s on %s", binary, side)
	return nil
}

// readResults reads the events of test2json. It says whether the process came to its end.
func readResults(t *testing.T, out []byte) (results map[string]*result, whole bool) {
	t.Helper()
	results = map[string]*result{}
	of := func(name string) *result {
		if results[name] == nil {
			results[name] = &result{}
		}
		return results[name]
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var event struct{ Action, Test, Output string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &event), lines.Text())
		said, isMade := strings.CutPrefix(event.Output, made+"informer")
		switch test := testOf(event.Test); {
		case isMade && strings.TrimSpace(said) != "":
			of(strings.TrimSpace(said)).made++
		case isMade && test != "":
			of(test).made++
		case test == "":
			whole = whole || event.Output == "PASS\n" || event.Output == "FAIL\n"
		case event.Action == "output":
			if r := of(event.Test); len(r.output) < maxOutput {
				r.output += event.Output
			}
		default:
			of(event.Test).passed = event.Action == "pass" || event.Action == "skip"
		}
	}
	require.NoError(t, lines.Err())
	return results, whole
}

// maxOutput is how much is kept of the output of a test: some log without an end.
const maxOutput = 20_000

// testOf is the test of a subtest.
func testOf(name string) string {
	test, _, _ := strings.Cut(name, "/")
	return test
}

// comparison is what a package's tests did on both sides.
type comparison struct {
	equal, cases  int // tests that made something of ours, and their subtests
	elsewhere     int // tests that made nothing of ours
	better, worse []string
	neither       []string // fail on both sides, and count as equal
}

// compare counts tests and names those that differ. A test that differs is named even if it made
// nothing of ours: it may have ended before it could.
func compare(ours, theirs map[string]*result) (c comparison) {
	for name, their := range theirs {
		test := testOf(name)
		our := ours[name]
		if our == nil {
			our = &result{output: "it did not run"}
		}
		switch {
		case their.passed && !our.passed:
			c.worse = append(c.worse, name)
		case our.passed && !their.passed:
			c.better = append(c.better, name)
		case ours[test].made == 0 && name == test:
			c.elsewhere++
		case ours[test].made == 0:
		case name != test:
			c.cases++
		default:
			c.equal++
			if !our.passed {
				c.neither = append(c.neither, name)
			}
		}
	}
	slices.Sort(c.better)
	slices.Sort(c.worse)
	slices.Sort(c.neither)
	return c
}

// sides is what is known of a package's tests on both sides.
type sides struct {
	equal int               // how many make something of ours, and do as on client-go's informers
	worse map[string]string // those that fail on ours alone, and why
	// unsteady has tests that may fail on a busy machine and are then run again, and why.
	unsteady map[string]string
	ginkgo   bool
}

// verdict names each way in which a comparison is not as it is known.
func (s sides) verdict(c comparison, ours map[string]*result) (wrong []string) {
	say := func(format string, arguments ...any) { wrong = append(wrong, fmt.Sprintf(format, arguments...)) }
	used := map[string]bool{}
	for _, name := range c.worse {
		used[name], used[testOf(name)] = true, true
		if s.worse[name] == "" && s.worse[testOf(name)] == "" {
			say("%s fails on ours, and passes on client-go's:\n%s", name, outputOf(ours, name))
		}
	}
	for name, reason := range s.worse {
		if !used[name] {
			say("%s is as on client-go's informers, and is listed as worse (%s)", name, reason)
		}
	}
	if c.equal != s.equal {
		say("%d tests make something of ours and are equal: %d are recorded", c.equal, s.equal)
	}
	slices.Sort(wrong)
	return wrong
}

func outputOf(results map[string]*result, name string) string {
	if r := results[name]; r != nil {
		return r.output
	}
	return "it did not run"
}

// TestCompare: a judge that cannot fail proves nothing.
func TestCompare(t *testing.T) {
	run := func(failing ...string) map[string]*result {
		results := map[string]*result{}
		for _, name := range []string{"TestSync", "TestSync/one", "TestKnown", "TestNeither", "TestNames"} {
			results[name] = &result{passed: !slices.Contains(failing, name), made: 1}
		}
		results["TestNames"].made = 0
		return results
	}
	known := sides{equal: 2, worse: map[string]string{"TestKnown": "ours is stricter"}}
	judge := func(ours, theirs map[string]*result) string {
		return strings.Join(known.verdict(compare(ours, theirs), ours), "\n")
	}
	theirs := run("TestNeither")
	require.Empty(t, judge(run("TestKnown", "TestNeither"), theirs))
	require.Equal(t, comparison{equal: 2, cases: 1, elsewhere: 1, worse: []string{"TestKnown"}, neither: []string{"TestNeither"}},
		compare(run("TestKnown", "TestNeither"), theirs))
	require.Equal(t, []string{"TestNeither"}, compare(run(), theirs).better)
	gone := run("TestKnown", "TestNeither")
	delete(gone, "TestSync/one")
	for want, ours := range map[string]map[string]*result{
		"TestKnown is as on client-go's informers, and is listed":            run("TestNeither"),
		"TestSync fails on ours, and passes on client-go's":                  run("TestKnown", "TestNeither", "TestSync"),
		"TestSync/one fails on ours, and passes on client-go's":              run("TestKnown", "TestNeither", "TestSync/one"),
		"TestSync/one fails on ours, and passes on client-go's:\nit did not": gone,
		"TestNames fails on ours, and passes on client-go's":                 run("TestKnown", "TestNeither", "TestNames"),
		"1 tests make something of ours and are equal: 2 are recorded":       run("TestKnown", "TestNeither", "TestSync"),
	} {
		require.Contains(t, judge(ours, theirs), want)
	}
}

// TestReadResults: a process that panics in a test, and informers that were made in another
// goroutine or beside other tests.
func TestReadResults(t *testing.T) {
	events := `{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"tributary made: informer \n"}
{"Action":"output","Test":"TestA","Output":"tributary made: informer TestB\n"}
{"Action":"run","Test":"TestA/one"}
{"Action":"output","Test":"TestA/one","Output":"tributary made: informer \n"}
{"Action":"pass","Test":"TestA/one"}
{"Action":"pass","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"output","Test":"TestB","Output":"panic: no\n"}
{"Action":"fail","Test":"TestB"}
`
	results, whole := readResults(t, []byte(events))
	require.False(t, whole)
	require.Equal(t, map[string]*result{
		"TestA": {passed: true, made: 2}, "TestA/one": {passed: true}, "TestB": {made: 1, output: "panic: no\n"},
	}, results)
	_, whole = readResults(t, []byte(events+`{"Action":"output","Output":"FAIL\n"}`))
	require.True(t, whole)
}
