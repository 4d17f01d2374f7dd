package status

import (
	"bytes"
	"html/template"
	"slices"
	"time"
)

// numbersEvery is the number of looks between two of the same row if only its numbers differ.
const numbersEvery = 10

// frame is the HTML of a choice at one look.
type frame struct {
	Parts map[string]template.HTML `json:"parts,omitempty"` // by the id of the element
	Order []string                 `json:"order"`           // the names of the rows; nil as before
	Rows  map[string]template.HTML `json:"rows,omitempty"`  // by name

	states map[string]State // of the rows
}

// frame is what a choice shows.
func (l *look) frame(c choice) frame {
	s := c.of(&l.Document)
	all := summaryOf(s, &l.Document)
	f := frame{
		Parts: map[string]template.HTML{"about": execute("about", l.Document), "panel": ""},
		Order: make([]string, 0, len(s.Rows)), Rows: map[string]template.HTML{}, states: map[string]State{},
	}
	for _, id := range []string{"verdict", "chips", "foot"} {
		f.Parts[id] = execute(id, all)
	}
	if s.Open != nil || s.Lost != "" {
		open := struct {
			selection
			Detail detail
		}{selection: s}
		if s.Open != nil {
			open.Detail = detailOf(s.Open)
		}
		f.Parts["panel"] = execute("panel", open)
	}
	for _, one := range s.Rows {
		f.Order = append(f.Order, one.Name)
		f.Rows[one.Name], f.states[one.Name] = l.row(one), one.State
	}
	return f
}

// row is the row of a copy, which viewers share.
func (l *look) row(c *Copy) template.HTML {
	l.mu.Lock()
	defer l.mu.Unlock()
	html, known := l.rows[c.Name]
	if !known {
		html = execute("row", struct {
			*Copy
			Link, Problem string
		}{c, choice{rows: pageRows, copy: c.Name}.link(), c.problem()})
		l.rows[c.Name] = html
	}
	return html
}

func execute(name string, data any) template.HTML {
	var out bytes.Buffer
	if err := page.ExecuteTemplate(&out, name, data); err != nil {
		panic(err) // the templates fit their data
	}
	return template.HTML(out.String())
}

// viewer is what one viewer has been sent.
type viewer struct {
	parts map[string]template.HTML
	order []string
	rows  map[string]sentRow
}

type sentRow struct {
	html  template.HTML
	state State
	at    time.Time
}

// news is the parts of f that the viewer lacks, and at most pageRows rows, the worst first. A row
// of which only numbers differ waits until it is old.
func (v *viewer) news(f frame, now time.Time, old time.Duration) frame {
	news := frame{Parts: map[string]template.HTML{}, Rows: map[string]template.HTML{}}
	for id, part := range f.Parts {
		if before, sent := v.parts[id]; !sent || before != part {
			news.Parts[id] = part
		}
	}
	if v.order == nil || !slices.Equal(f.Order, v.order) {
		news.Order = f.Order
	}
	rows := make(map[string]sentRow, len(f.Order))
	for _, name := range f.Order {
		row, sent := v.rows[name]
		same := sent && row.html == f.Rows[name]
		waits := sent && row.state == f.states[name] && now.Sub(row.at) < old
		if !same && !waits && len(news.Rows) < pageRows {
			row, sent = sentRow{f.Rows[name], f.states[name], now}, true
			news.Rows[name] = row.html
		}
		if sent {
			rows[name] = row
		}
	}
	v.parts, v.order, v.rows = f.Parts, f.Order, rows
	return news
}
