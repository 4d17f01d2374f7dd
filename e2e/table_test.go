package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// rows is a table of what a test counted, for people to read.
type rows struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func table(columns ...string) *rows { return &rows{lines: []string{strings.Join(columns, "\t")}} }

func (r *rows) add(cells ...any) {
	line := make([]string, len(cells))
	for i, cell := range cells {
		line[i] = fmt.Sprint(cell)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, strings.Join(line, "\t"))
}

func (r *rows) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 4, 2, ' ', 0)
	for _, line := range r.lines {
		fmt.Fprintln(w, line)
	}
	_ = w.Flush()
	return out.String()
}

// histogram draws how many of the moments fall into each slot of width. Empty slots are left out.
func histogram(moments []time.Duration, width time.Duration) string {
	if len(moments) == 0 {
		return "nothing\n"
	}
	slots := map[int]int{}
	for _, m := range moments {
		slots[slot(m, width)]++
	}
	first, last := slot(slices.Min(moments), width), slot(slices.Max(moments), width)
	var out strings.Builder
	for i := first; i <= last; i++ {
		if slots[i] == 0 {
			if slots[i-1] != 0 {
				out.WriteString("      …\n")
			}
			continue
		}
		fmt.Fprintf(&out, "%7s %4d %s\n", (time.Duration(i) * width).Round(time.Millisecond), slots[i], strings.Repeat("#", slots[i]))
	}
	return out.String()
}

// busiest is the largest number of moments in one slot.
func busiest(moments []time.Duration, width time.Duration) (most int) {
	slots := map[int]int{}
	for _, m := range moments {
		i := slot(m, width)
		slots[i]++
		most = max(most, slots[i])
	}
	return most
}

// slot rounds down, below zero too.
func slot(m, width time.Duration) int {
	i := int(m / width)
	if m < 0 && m%width != 0 {
		i--
	}
	return i
}

// quantile is the value below which the share q of the sorted durations lies.
func quantile(durations []time.Duration, q float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))].Round(time.Millisecond)
}
