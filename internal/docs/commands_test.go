package docs_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// command is a line that a reader types into a shell.
var command = regexp.MustCompile(`^(?:\$ )?((?:[A-Z_]+=\S+ )*(?:go (?:run|test|get|build|install|doc)|git|kubectl|tributary|curl|etcdctl|etcdutl|docker|helm|openssl|export|\.ci/\w+) .+)$`)

// TestEachCommandIsRunOrMarked: testdata/commands.txt says of each command in a block of a page
// which test runs it, or why none does. A test that it names exists.
func TestEachCommandIsRunOrMarked(t *testing.T) {
	atRoot(t)
	var rows []*regexp.Regexp
	tests := declaredTests(t)
	for line := range strings.Lines(read(t, "internal/docs/testdata/commands.txt")) {
		pattern, how, found := strings.Cut(strings.TrimSpace(line), " => ")
		if !found || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(how, "Test") {
			require.True(t, tests[how], line)
		} else {
			require.Regexp(t, `^(\.ci/run \w+|not run: .+)$`, how)
		}
		quoted := strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")
		rows = append(rows, regexp.MustCompile("^"+quoted+"$"))
	}
	found := 0
	for path := range files(t, ".md") {
		for _, typed := range commandsOf(read(t, path)) {
			found++
			if !slices.ContainsFunc(rows, func(known *regexp.Regexp) bool { return known.MatchString(typed) }) {
				t.Errorf("%s has a command that internal/docs/testdata/commands.txt does not know:\n%s", path, typed)
			}
		}
	}
	require.Greater(t, found, 40)
}

// commandsOf has the commands in the blocks of a page, without comments.
func commandsOf(page string) (all []string) {
	for _, block := range blocksOfCode.FindAllString(page, -1) {
		if fence, _, _ := strings.Cut(block, "\n"); fence == "```go" || fence == "```yaml" {
			continue
		}
		for line := range strings.Lines(block) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
			if typed := command.FindStringSubmatch(strings.TrimSpace(line)); typed != nil {
				all = append(all, typed[1])
			}
		}
	}
	return all
}
