package status

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// writeText writes one screen: a line for each copy of a choice, and its problems below it. Synced
// copies are a number if they are many.
func writeText(w io.Writer, d *Document, c choice) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s  %s %s, up %s: %s, heap %s\n", d.At.Format(time.RFC3339), printable(d.Title), d.ProgramVersion,
		age(d.At, d.StartedAt), count(len(d.Copies)+d.Hidden, "copy"), readable(d.HeapBytes))
	c.rows = maxCopies // a terminal scrolls
	s := c.of(d)
	var states []string
	for _, of := range summaryOf(s, d).Counts {
		states = append(states, fmt.Sprint(of.N, " ", of.State))
	}
	fmt.Fprintf(&out, "%s\n\n", strings.Join(states, ", "))
	rows := s.Rows
	if c.copy != "" {
		rows = nil
		if s.Open != nil {
			rows = []*Copy{s.Open}
		}
	}
	fmt.Fprintf(&out, "%-9s %-32s %-10s %9s %9s %10s %10s\n", "STATE", "NAME", "KIND", "OBJECTS", "EVENTS/S", "PROVEN", "READER LAG")
	for _, one := range rows {
		textOf(&out, one, d.At)
	}
	if s.Folded > 0 && c.copy == "" {
		fmt.Fprintf(&out, "and %s: ?state=synced lists them, ?q=WORD finds some\n", count(s.Folded, "synced copy"))
	}
	if d.Hidden > 0 {
		fmt.Fprintf(&out, "and %d more\n", d.Hidden)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// textOf writes a copy.
func textOf(out io.Writer, c *Copy, now time.Time) {
	lag := "-"
	if len(c.Readers) > 0 {
		lag = seconds(c.Readers[0].LagSeconds)
	}
	proven := age(now, c.ProvenAt)
	if detailOf(c).Silent {
		proven = "-"
	}
	fmt.Fprintf(out, "%-9s %-32s %-10s %9d %9.1f %10s %10s\n",
		c.State, printable(c.Name), c.Kind, c.Objects, c.EventsPerSecond, proven, lag)
	if c.State != Synced {
		fmt.Fprintf(out, "          since: %s (%s) %s\n", c.Since.Format(time.RFC3339), age(now, c.Since), strings.Join(c.Classes, ", "))
	}
	for _, part := range []struct {
		word  string
		lines []string
	}{{"cause:", c.Causes}, {"do:", c.Advice}, {"run:", c.Commands}, {"waits:", detailOf(c).Behind}} {
		for _, line := range part.lines {
			fmt.Fprintf(out, "          %-6s %s\n", part.word, printable(line))
		}
	}
}

// printable shows what a terminal or a browser obeys as an escape: control characters, and those
// that turn the direction of a text, such as U+202E.
func printable(text string) string {
	if !strings.ContainsFunc(text, obeyed) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if obeyed(r) {
			out.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

func obeyed(r rune) bool { return !unicode.IsGraphic(r) }

// age is how long ago at was.
func age(now, at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return seconds(now.Sub(at).Seconds())
}

func seconds(s float64) string {
	return time.Duration(max(0, s) * float64(time.Second)).Round(time.Second).String()
}

func readable(bytes uint64) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%.0f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
