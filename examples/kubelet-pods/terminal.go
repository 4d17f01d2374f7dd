package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/go-logr/logr"
)

// columns is the width of a story's lines.
const columns = 80

// The colors of a terminal.
const (
	bold    = "1"
	faint   = "2"
	red     = "31"
	green   = "32"
	yellow  = "33"
	magenta = "35"
	cyan    = "36"
)

// paint colors text for a terminal; false leaves it plain, for a pipe or a file.
type paint bool

// paintFor asks for no color where the environment or the writer has none: https://no-color.org.
func paintFor(w io.Writer) paint {
	file, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p paint) in(color, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// wrapped breaks a text between words into lines of a width. The first one begins with the word
// before the text, the others as far to the right.
func wrapped(before, text string) (lines []string) {
	line, margin := before, strings.Repeat(" ", len(before))
	if strings.HasPrefix(before, "#") {
		margin = "#" + margin[1:]
	}
	for i, word := range strings.Fields(text) {
		if i > 0 && utf8.RuneCountInString(line+" "+word) > columns {
			lines, line = append(lines, line), margin
		} else if i > 0 {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// teller writes the narration of a story, in lines that fit a terminal.
type teller struct {
	out   io.Writer
	paint paint
}

// tell writes a sentence of the narrator.
func (t teller) tell(format string, args ...any) { t.write(bold, "# ", fmt.Sprintf(format, args...)) }

func (t teller) write(color, before, text string) {
	var out strings.Builder
	for _, line := range wrapped(before, text) {
		fmt.Fprintln(&out, t.paint.in(color, line))
	}
	_, _ = io.WriteString(t.out, out.String()) // at once, so that no update comes between
}

// quietLog is the log of a story, in lines like its own: a problem, and its end.
type quietLog struct{ teller }

func (l quietLog) logger() logr.Logger { return logr.New(l) }

// Init is part of logr.LogSink.
func (l quietLog) Init(logr.RuntimeInfo) {}

// Enabled is part of logr.LogSink.
func (l quietLog) Enabled(level int) bool { return level == 0 }

// Info is part of logr.LogSink.
func (l quietLog) Info(_ int, message string, pairs ...any) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == "source" {
			message = fmt.Sprint("source ", pairs[i+1], ": ", message)
		}
	}
	l.write(faint, "  log: ", message)
}

// Error is part of logr.LogSink.
func (l quietLog) Error(err error, message string, _ ...any) {
	l.write(yellow, "  log: ", fmt.Sprint(message, ": ", err))
}

// WithValues is part of logr.LogSink.
func (l quietLog) WithValues(...any) logr.LogSink { return l }

// WithName is part of logr.LogSink.
func (l quietLog) WithName(string) logr.LogSink { return l }
