package status

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	// pageRows is the number of rows at first, and of those that one more click adds. Each frame of
	// a stream has that many at most, so that no browser works long at one of them.
	pageRows = 100
	// unfolded is the number of synced copies up to which they are rows without being asked for.
	unfolded = 20
)

// choice is the part of the page that a viewer looks at: the query of the request. The script keeps
// the same words behind the # of the page's address.
type choice struct {
	filter string // q
	state  State
	rows   int
	copy   string
}

func choiceOf(query url.Values) choice {
	rows, _ := strconv.Atoi(query.Get("rows"))
	return choice{
		filter: query.Get("q"),
		state:  State(query.Get("state")),
		rows:   min(max(rows, pageRows), maxCopies),
		copy:   query.Get("copy"),
	}
}

// link is the address of a choice.
func (c choice) link() string {
	query := url.Values{}
	for key, value := range map[string]string{"q": c.filter, "state": string(c.state), "copy": c.copy} {
		if value != "" {
			query.Set(key, value)
		}
	}
	if c.rows != pageRows {
		query.Set("rows", strconv.Itoa(c.rows))
	}
	return "?" + query.Encode()
}

// The links of the page, each to another choice.

// Toggle is a chip: a second click lifts it.
func (c choice) Toggle(state State) string {
	if c.rows = pageRows; c.state == state {
		state = ""
	}
	c.state = state
	return c.link()
}

// Unfold asks for the synced copies.
func (c choice) Unfold() string {
	c.state = Synced
	return c.link()
}

// Extend asks for more rows.
func (c choice) Extend() string {
	c.rows += pageRows
	return c.link()
}

// Copy opens a copy in the panel; an empty name opens the worst one.
func (c choice) Copy(name string) string {
	c.copy = name
	return c.link()
}

// State is the chip that is chosen.
func (c choice) State() State { return c.state }

// matches reports whether a copy has all words of the filter, and the state.
func (c choice) matches(one *Copy) bool {
	if c.state != "" && one.State != c.state {
		return false
	}
	if c.filter == "" {
		return true
	}
	text := strings.ToLower(one.Name + " " + one.Kind + " " + strings.Join(one.Classes, " "))
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(c.filter)), func(word string) bool { return !strings.Contains(text, word) })
}

// selection is the copies of a choice.
type selection struct {
	choice
	Rows   []*Copy // the worst first
	Folded int     // synced copies that are shown once they are asked for
	Beyond int     // copies below the last row
	Open   *Copy   // in the panel; nil: none
	Lost   string  // the name to open, of which there is no copy
}

func (c choice) of(d *Document) selection {
	s := selection{choice: c, Lost: c.copy}
	well := 0
	for _, one := range d.Copies {
		if one.State == Synced {
			well++
		}
	}
	folds := c.state == "" && c.filter == "" && well > unfolded
	for i := range d.Copies {
		one := &d.Copies[i]
		if one.Name == c.copy {
			s.Open, s.Lost = one, ""
		}
		switch {
		case !c.matches(one):
		case folds && one.State == Synced:
			s.Folded++
		case len(s.Rows) == c.rows:
			s.Beyond++
		default:
			s.Rows = append(s.Rows, one)
		}
	}
	if c.copy == "" && len(s.Rows) > 0 && s.Rows[0].State != Synced {
		s.Open = s.Rows[0]
	}
	return s
}

// Chosen reports whether the panel was asked for.
func (c choice) Chosen() bool { return c.copy != "" }
