package status

import (
	"fmt"
	"html/template"
	"strings"
	"time"
)

// summary is the verdict, and the chips.
type summary struct {
	selection
	Document *Document
	Worst    State
	All      int     // copies
	Bad      int     // those that are not synced
	Named    []*Copy // the first of them
	Counts   []stateCount
}

type stateCount struct {
	State State
	N     int
}

// More is the number of bad copies without a name.
func (s summary) More() int { return s.Bad - len(s.Named) }

func summaryOf(s selection, d *Document) summary {
	all := summary{selection: s, Document: d, All: len(d.Copies) + d.Hidden}
	counts := map[State]int{}
	for i := range d.Copies {
		one := &d.Copies[i]
		counts[one.State]++
		if one.State == Synced {
			continue
		}
		if all.Bad++; all.Bad <= 3 {
			all.Named = append(all.Named, one)
		}
	}
	for _, state := range states {
		if n := counts[state]; n > 0 {
			all.Counts = append(all.Counts, stateCount{state, n})
		}
	}
	if len(d.Copies) > 0 {
		all.Worst = d.Copies[0].State
	}
	return all
}

// detail is a copy, in the words of the panel.
type detail struct {
	*Copy
	Silent   bool // nothing is known of the last proof
	Trouble  bool
	Says     string
	Behind   []string // readers
	UpToDate string   // the others
}

// says explains the states.
var says = map[State]string{
	Wrong:    "The content is not the server's",
	Stopped:  "Nothing keeps the copy",
	Stale:    "Not proven",
	Failing:  "Failing, with the last good state,",
	Restored: "Restored from a checkpoint or a cache, and not proven,",
	Syncing:  "The first state is not complete",
	Late:     "A reader is behind",
}

func detailOf(c *Copy) detail {
	r := detail{Copy: c, Silent: (c.Kind == kindCache || c.Kind == kindRefs) && c.ProvenAt.IsZero(), Trouble: c.State != Synced, Says: says[c.State]}
	if c.State == Failing && !c.synced {
		r.Says = "Failing, without a first state,"
	}
	var well []string
	for _, reader := range c.Readers {
		switch {
		case reader.Name == watchers && c.Kind == kindCache:
			r.UpToDate = count(reader.Count, "watcher")
			if reader.LagSeconds > 0 {
				r.UpToDate += ", told within " + brief(reader.LagSeconds)
			}
			if c.CutWatchers > 0 {
				r.Behind = append(r.Behind, count(c.CutWatchers, "watcher")+" cut, too slow")
			}
			return r
		case reader.Failed:
			r.Behind = append(r.Behind, reader.Name+" has ended with a panic")
		case reader.Behind > 0 || reader.LagSeconds > 0:
			r.Behind = append(r.Behind, fmt.Sprintf("%s: %d behind, %s", reader.Name, reader.Behind, brief(reader.LagSeconds)))
		default:
			well = append(well, reader.Name)
		}
	}
	switch more := max(0, len(well)-3) + c.HiddenReaders; {
	case more > 0:
		r.UpToDate = fmt.Sprintf("%s and %d more: up to date", strings.Join(well[:min(len(well), 3)], ", "), more)
	case len(well) > 0:
		r.UpToDate = strings.Join(well, ", ") + ": up to date"
	}
	return r
}

// count is a number of things.
func count(n int, thing string) string {
	switch stem, y := strings.CutSuffix(thing, "y"); {
	case n == 1:
	case y:
		thing = stem + "ies"
	default:
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}

// brief is a time with two digits or so.
func brief(s float64) string {
	switch {
	case s < 0.01:
		return fmt.Sprintf("%.2g ms", s*1000)
	case s < 1:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 10:
		return fmt.Sprintf("%.1f s", s)
	}
	return seconds(s)
}

// share is a part in percent.
func share(part, whole uint64) string {
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(max(1, whole)))
}

// clock is a time for a page without a script.
func clock(at time.Time) string { return at.UTC().Format("2 Jan 15:04:05") }

// stamp is a time as scripts read it.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// problem is what a row says of a copy that is not well.
func (c *Copy) problem() string {
	if len(c.Classes) > 0 {
		return strings.Join(c.Classes, ", ")
	}
	if behind := detailOf(c).Behind; len(behind) > 0 && c.State != Synced {
		return behind[0]
	}
	return ""
}

// wraps is a text that may be broken after a punctuation mark, and within no word.
func wraps(text string) template.HTML {
	var out strings.Builder
	for _, r := range printable(text) {
		out.WriteString(template.HTMLEscapeString(string(r)))
		if strings.ContainsRune("/?&=.,:;_-@", r) {
			out.WriteString("<wbr>")
		}
	}
	return template.HTML(out.String())
}

// curve is a path with a bar for each minute, in a box of 60 by 16.
func curve(hour []int) string {
	top := max(1, most(hour))
	var path strings.Builder
	for i, n := range hour {
		if n > 0 {
			fmt.Fprintf(&path, "M%d,16V%.1fh1V16", 60-len(hour)+i, 15-14*float64(n)/float64(top))
		}
	}
	return path.String()
}

func most(hour []int) (n int) {
	for _, events := range hour {
		n = max(n, events)
	}
	return n
}

// docs explains the states, each in a row with an anchor.
const docs = "https://github.com/tributary-go/tributary/blob/main/docs/freshness.md"

func link(state State) string { return docs + "#state-" + string(state) }
