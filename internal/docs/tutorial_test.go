package docs_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is how long a program may take for a line: they take milliseconds.
const patience = time.Minute

// TestTutorialShowsItsPrograms: each Go block is a part of a program below examples/tutorial, to
// the letter.
func TestTutorialShowsItsPrograms(t *testing.T) {
	atRoot(t)
	page, err := os.ReadFile("docs/tutorial.md")
	require.NoError(t, err)
	programs := contents(t, []string{"examples/tutorial/*/*.go"})
	shown := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Len(t, shown, 8)
	for _, block := range shown {
		require.Contains(t, programs, block[1])
	}
}

// TestTutorial plays the page word for word: each command of a console block is run, and prints the
// lines below it. A block of text has the next lines of the program that runs. The character … in
// a line stands for any text.
func TestTutorial(t *testing.T) {
	atRoot(t)
	page, err := os.ReadFile("docs/tutorial.md")
	require.NoError(t, err)
	text := string(page)
	for _, port := range []string{"8001", "8002"} { // free ones of this machine
		text = strings.ReplaceAll(text, "localhost:"+port, freeAddress(t))
	}
	player := &player{t: t, environment: os.Environ()}
	played := 0
	for _, block := range regexp.MustCompile("(?s)```(console|text)\n(.*?)```").FindAllStringSubmatch(text, -1) {
		if block[1] == "text" {
			player.program.says(block[2])
			continue
		}
		for _, step := range regexp.MustCompile(`(?m)^(\$ |\^C)`).Split(block[2], -1)[1:] {
			command, lines, _ := strings.Cut(step, "\n")
			player.play(command, lines)
			played++
		}
	}
	require.Greater(t, played, 12)
	player.program.interrupt()
}

// player is the person with three terminals.
type player struct {
	t           *testing.T
	environment []string
	cluster     *running // the first terminal
	program     *running // the second terminal
}

func (p *player) play(command, prints string) {
	name, setting := strings.CutPrefix(command, "export ")
	switch folder, started := strings.CutPrefix(command, "go run "); {
	case command == "": // Ctrl-C in the first terminal
		p.cluster.interrupt()
	case setting:
		p.environment = append(p.environment, name)
	case started && strings.HasSuffix(folder, "/cluster"):
		address := regexp.MustCompile(`http://(\S+);`).FindStringSubmatch(prints)[1]
		p.cluster = p.start(folder, "--listen", address)
		p.cluster.says(prints)
	case started:
		if p.program != nil {
			p.program.interrupt()
		}
		p.program = p.start(folder)
		p.program.says(prints)
	default: // the third terminal
		var out []byte
		// A status page is up to a second old.
		require.Eventually(p.t, func() bool {
			var err error
			out, err = exec.CommandContext(p.t.Context(), "sh", "-c", command).Output()
			return err == nil && matches(prints, strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"))
		}, patience, 100*time.Millisecond, "%s does not print\n%s", command, prints)
	}
}

// running is a program in a terminal.
type running struct {
	t       *testing.T
	command *exec.Cmd
	lines   chan string
}

func (p *player) start(folder string, args ...string) *running {
	p.t.Helper()
	binary := filepath.Join(p.t.TempDir(), filepath.Base(folder))
	out, err := exec.CommandContext(p.t.Context(), "go", "build", "-o", binary, folder).CombinedOutput()
	require.NoError(p.t, err, "%s", out)
	r := &running{t: p.t, command: exec.CommandContext(p.t.Context(), binary, args...), lines: make(chan string, 100)}
	r.command.Env = p.environment
	stdout, err := r.command.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, r.command.Start())
	go func() {
		defer close(r.lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			r.lines <- scanner.Text()
		}
	}()
	return r
}

// says waits for the lines, which come in any order.
func (r *running) says(block string) {
	r.t.Helper()
	var got []string
	for range strings.Count(block, "\n") {
		select {
		case line := <-r.lines:
			got = append(got, line)
		case <-time.After(patience):
			require.FailNow(r.t, "a program is silent", "after %q, want\n%s", got, block)
		}
	}
	require.True(r.t, matches(block, got), "got %q, want\n%s", got, block)
}

func (r *running) interrupt() {
	r.t.Helper()
	require.NoError(r.t, r.command.Process.Signal(os.Interrupt))
	for line := range r.lines {
		require.Fail(r.t, "a line that the page does not have", line)
	}
	require.NoError(r.t, r.command.Wait())
}

// matches reports whether the lines are those of the block, in any order.
func matches(block string, got []string) bool {
	var want []string
	if block != "" {
		want = strings.Split(strings.TrimSuffix(block, "\n"), "\n")
	} else if len(got) == 1 && got[0] == "" {
		return true
	}
	for _, line := range want {
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + "$")
		found := -1
		for i, other := range got {
			if pattern.MatchString(strings.TrimSpace(other)) || pattern.MatchString(other) {
				found = i
			}
		}
		if found < 0 {
			return false
		}
		got = append(got[:found:found], got[found+1:]...)
	}
	return len(got) == 0
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return fmt.Sprintf("localhost:%d", listener.Addr().(*net.TCPAddr).Port)
}
