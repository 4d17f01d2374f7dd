package status

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
)

// writeText writes one screen: a line for each copy, and its problems below it.
func writeText(w io.Writer, d Document) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s  %d copies, heap %s\n\n", d.At.Format(time.RFC3339), len(d.Copies)+d.Hidden, readable(d.HeapBytes))
	fmt.Fprintf(&out, "%-9s %-32s %-10s %9s %9s %10s %10s\n", "STATE", "NAME", "KIND", "OBJECTS", "EVENTS/S", "PROVEN", "READER LAG")
	for _, c := range d.Copies {
		lag := "-"
		if len(c.Readers) > 0 {
			lag = seconds(c.Readers[0].LagSeconds)
		}
		fmt.Fprintf(&out, "%-9s %-32s %-10s %9d %9.1f %10s %10s\n",
			c.State, printable(c.Name), c.Kind, c.Objects, c.EventsPerSecond, age(d.At, c.ProvenAt), lag)
		if c.State != Synced {
			fmt.Fprintf(&out, "          since: %s (%s) %s\n", c.Since.Format(time.RFC3339), age(d.At, c.Since), strings.Join(c.Classes, ", "))
		}
		for _, line := range c.Causes {
			fmt.Fprintf(&out, "          cause: %s\n", printable(line))
		}
		for _, line := range c.Advice {
			fmt.Fprintf(&out, "          do:    %s\n", line)
		}
		for _, line := range rowOf(c).Behind {
			fmt.Fprintf(&out, "          waits: %s\n", printable(line))
		}
	}
	if d.Hidden > 0 {
		fmt.Fprintf(&out, "and %d more\n", d.Hidden)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// printable has no control characters, which a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}

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
