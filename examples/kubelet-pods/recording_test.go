package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// picture is the recording of the story.
const picture = "../../docs/images/story.svg"

var update = flag.Bool("update", false, "record the story into docs/images/story.svg")

// recording is both streams of the program on one terminal: its lines, with their times.
type recording struct {
	began time.Time

	mu    sync.Mutex // guards the fields below
	lines []recorded
	rest  string // of a line that has not ended
}

type recorded struct {
	at   time.Duration
	text string
}

func (r *recording) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := strings.Split(r.rest+string(p), "\n")
	for _, line := range lines[:len(lines)-1] {
		r.lines = append(r.lines, recorded{time.Since(r.began), line})
	}
	r.rest = lines[len(lines)-1]
	return len(p), nil
}

// texts are the lines so far.
func (r *recording) texts() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		all = append(all, line.text)
	}
	return all
}

var escape = regexp.MustCompile(`\x1b\[(\d+)m(.*?)\x1b\[0m`)

func plain(line string) string { return escape.ReplaceAllString(line, "$2") }

// TestTheStoryOnATerminal: its lines fit 80 columns in color, the log does not cut through them,
// and the end says what was shown and what is next. The picture in docs is of this story.
func TestTheStoryOnATerminal(t *testing.T) {
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	o.paint = func(io.Writer) paint { return true }
	if !*update {
		o.beat = 150 * time.Millisecond
	}
	terminal := &recording{began: time.Now()}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, o, terminal, terminal) }()
	eventually(t, func() bool { return strings.HasSuffix(plain(strings.Join(terminal.texts(), " ")), "ends the story.") },
		func() string { return strings.Join(terminal.texts(), "\n") })
	cancel()
	require.Equal(t, exitOK, <-ended)
	colored := 0
	for _, line := range terminal.texts() {
		require.LessOrEqual(t, utf8.RuneCountInString(plain(line)), columns, line)
		require.Regexp(t, `^(# |  log: |       |\d\d:\d\d:\d\d [A-Z]+ )[^\x1b]+$`, plain(line), "nothing else cuts through")
		if plain(line) != line {
			colored++
		}
	}
	require.Greater(t, colored, 30)
	if *update {
		require.NoError(t, os.WriteFile(picture, terminal.svg(), 0o644))
	}
	drawn, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.Less(t, len(drawn), 40<<10)
	shown := textsOf(t, drawn)
	require.Equal(t, narration(terminal.texts()), narration(shown), "go test ./examples/kubelet-pods -run TestTheStoryOnATerminal -update")
	all := strings.Join(shown, "\n")
	require.Regexp(t, `\n  log: Problem: /\S+ document 1, line 4: `, all)
	require.Contains(t, all, "\n  log: Problem is gone\n")
	for op := range colors {
		require.Contains(t, all, " "+string(op)+" ")
	}
	require.Contains(t, all, "\n# That was each operation")
	require.Contains(t, all, "\n# Next: --status")
}

// narration is the lines of the narrator, but for those with an address or a folder of this run. A
// busy machine may merge two updates into one.
func narration(lines []string) (all []string) {
	for _, line := range lines {
		if line = plain(line); strings.HasPrefix(line, "# ") && !strings.Contains(line, "127.0.0.1:") && !strings.HasPrefix(line, "# edit:") {
			all = append(all, line)
		}
	}
	return all
}

// TestTheLogOfAStory: a problem and its end are lines like those of the story, and fit a terminal.
func TestTheLogOfAStory(t *testing.T) {
	var out strings.Builder
	log := quietLog{teller{out: &out}}.logger().WithName("file").WithValues("source", "file")
	log.Error(errors.New(strings.Repeat("half-written ", 8)), "Problem", "path", "/tmp")
	log.V(2).Info("Status")
	log.Info("Problem is gone", "path", "/tmp")
	require.Equal(t, "  log: Problem: half-written half-written half-written half-written half-written\n"+
		"       half-written half-written half-written\n"+
		"  log: Problem is gone\n", out.String())
}

// textsOf are the lines of a picture.
func textsOf(t *testing.T, svg []byte) (lines []string) {
	t.Helper()
	var root struct {
		Texts []struct {
			Inner string `xml:",innerxml"`
		} `xml:"text"`
	}
	require.NoError(t, xml.Unmarshal(svg, &root))
	for _, text := range root.Texts {
		lines = append(lines, html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(text.Inner, "")))
	}
	return lines
}

// svg draws the lines, each from its time on. It moves once, and not at all for a person who wants
// less motion.
func (r *recording) svg() []byte {
	const character, height, margin = 8.4, 19, 16
	var out bytes.Buffer
	width, total := columns*character+2*margin, len(r.lines)*height+2*margin
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %d" width="%g" height="%d" role="img">
<title>go run ./examples/kubelet-pods, in a terminal</title>
<style>
svg { color-scheme: light dark; }
rect { fill: #fbfbfc; stroke: #d9dee5; }
text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre; fill: #1b1f24; animation: appear 1ms backwards; }
.c1 { font-weight: 700; } .c2 { fill: #5b6470; }
.c31 { fill: #b3160e; } .c32 { fill: #17652a; } .c33 { fill: #7a4b00; } .c35 { fill: #8a2a8a; } .c36 { fill: #0b5c7a; }
@keyframes appear { from { opacity: 0; } }
@media (prefers-color-scheme: dark) {
  rect { fill: #14171c; stroke: #353c48; } text { fill: #e6e9ee; } .c2 { fill: #a2acba; }
  .c31 { fill: #ff9087; } .c32 { fill: #7ddc8f; } .c33 { fill: #ffcb66; } .c35 { fill: #f0a3f0; } .c36 { fill: #7cd3ef; }
}
@media (prefers-reduced-motion: reduce) { text { animation: none; } }
</style>
<rect x="0.5" y="0.5" width="%g" height="%d" rx="6"/>
`, width, total, width, total, width-1, total-1)
	for i, line := range r.lines {
		text := escape.ReplaceAllString(html.EscapeString(line.text), `<tspan class="c$1">$2</tspan>`)
		fmt.Fprintf(&out, `<text x="%d" y="%d" textLength="%g" style="animation-delay:%.1fs" xml:space="preserve">%s</text>`+"\n",
			margin, margin+14+i*height, float64(utf8.RuneCountInString(plain(line.text)))*character, line.at.Seconds(), text)
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// TestColorsAreForTerminals: not for a pipe, nor where the environment asks for none.
func TestColorsAreForTerminals(t *testing.T) {
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, too
	require.NoError(t, err)
	defer terminal.Close()
	reader, pipe, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	defer pipe.Close()
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	require.True(t, bool(paintFor(terminal)))
	require.False(t, bool(paintFor(pipe)))
	require.False(t, bool(paintFor(new(bytes.Buffer))))
	require.Equal(t, "plain", paintFor(pipe).in(red, "plain"))
	t.Setenv("TERM", "dumb")
	require.False(t, bool(paintFor(terminal)))
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	require.False(t, bool(paintFor(terminal)))
}
