package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Figures are the outcome of one measurement, by their names.
type Figures map[string]float64

// Say prints the figures for the parent of this process.
func (f Figures) Say() { Check(json.NewEncoder(os.Stdout).Encode(f)) }

// Since has the differences to an earlier time.
func (f Figures) Since(before Figures) Figures {
	differences := Figures{}
	for name, value := range f {
		differences[name] = value - before[name]
	}
	return differences
}

// Value is a figure, or a product of figures and numbers, such as "cpu*1e6/events"; ok is false if
// one of them is missing.
func (f Figures) Value(product string) (value float64, ok bool) {
	value = 1
	for operator := byte('*'); product != ""; {
		end := strings.IndexAny(product, "*/")
		if end < 0 {
			end = len(product)
		}
		factor, err := strconv.ParseFloat(product[:end], 64)
		if err != nil {
			if factor, ok = f[product[:end]]; !ok {
				return 0, false
			}
		}
		if operator == '/' {
			factor = 1 / factor
		}
		if value *= factor; end < len(product) {
			operator = product[end]
			end++
		}
		product = product[end:]
	}
	return value, true
}

// With has further figures, whose names begin so.
func (f Figures) With(prefix string, more Figures) Figures {
	all := maps.Clone(f)
	for name, value := range more {
		all[prefix+name] = value
	}
	return all
}

// Median sorts the values.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile sorts the values; of none it is zero.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(len(values)-1, int(q*float64(len(values))))]
}

// Medians takes each figure's own.
func Medians(runs []Figures) Figures {
	values := map[string][]float64{}
	for _, run := range runs {
		for name, value := range run {
			values[name] = append(values[name], value)
		}
	}
	medians := Figures{}
	for name, of := range values {
		medians[name] = Median(of)
	}
	return medians
}

// ByTurns measures each subject in turn, so that other work of the machine falls on all of them,
// and returns their medians.
func ByTurns[S any](repeat int, subjects []S, measure func(S) Figures) []Figures {
	runs := make([][]Figures, len(subjects))
	for range repeat {
		for i, subject := range subjects {
			Within(subject, func() { runs[i] = append(runs[i], measure(subject)) })
		}
	}
	medians := make([]Figures, len(subjects))
	for i, of := range runs {
		medians[i] = Medians(of)
	}
	return medians
}

// Repeated is ByTurns of one subject.
func Repeated[S any](repeat int, subject S, measure func(S) Figures) Figures {
	return ByTurns(repeat, []S{subject}, measure)[0]
}

// Column is a cell in each row of a table.
type Column struct {
	heading, format string
	figures         []string
	alone           bool
}

// Col is a column of as many figures as its format has verbs. They are separated by spaces, and
// each is a [Figures.Value].
func Col(heading, format, figures string) Column {
	return Column{heading: heading, format: format, figures: strings.Fields(figures)}
}

// Alone is the column without a ratio.
func (c Column) Alone() Column {
	c.alone = true
	return c
}

// Table prints rows of figures.
type Table struct {
	Lead    string // the headings of the columns before the figures, separated by bars
	Columns []Column
	Noise   float64 // figures of theirs that are not above it have no ratio
}

// Begin prints a title, unless it is empty, and the head.
func (t Table) Begin(title string, notes ...string) {
	if title != "" {
		fmt.Printf("\n### %s\n\n", title)
	}
	for _, note := range notes {
		fmt.Print(note, "\n\n")
	}
	fmt.Printf("|%s |", strings.TrimSuffix(" "+t.Lead, " "))
	for _, c := range t.Columns {
		fmt.Printf(" %s |", c.heading)
	}
	fmt.Printf("\n%s|\n", strings.Repeat("|---", 1+strings.Count(t.Lead, "|")+len(t.Columns)))
}

// Row prints a row. Cells without a figure are empty.
func (t Table) Row(f Figures, lead ...any) {
	t.line(lead, func(c Column) string {
		var values []any
		for _, product := range c.figures {
			value, ok := f.Value(product)
			if !ok {
				return ""
			}
			values = append(values, value)
		}
		return fmt.Sprintf(c.format, values...)
	})
}

// Rows prints a row for each subject, which leads it.
func Rows[S any](t Table, subjects []S, medians []Figures) {
	for i, f := range medians {
		t.Row(f, subjects[i])
	}
}

// Compare measures ours and theirs by turns, and prints a row of each and one of their ratio,
// behind the lead. It returns their medians.
func (t Table) Compare(repeat int, names []string, measure func(name string) Figures, lead ...any) []Figures {
	medians := ByTurns(repeat, names, measure)
	for i, f := range medians {
		t.Row(f, append(slices.Clip(lead), names[i])...)
	}
	t.Ratio(medians[0], medians[1], append(slices.Clip(lead), "**ours / theirs**")...)
	return medians
}

// Ratio prints a row of ours to theirs.
func (t Table) Ratio(ours, theirs Figures, lead ...any) {
	t.line(lead, func(c Column) string {
		a, ok := ours.Value(c.figures[0])
		b, _ := theirs.Value(c.figures[0])
		if c.alone || !ok || b <= t.Noise {
			return ""
		}
		return "**" + short(a/b) + "**"
	})
}

// short has two digits that mean something.
func short(ratio float64) string {
	switch {
	case ratio >= 10:
		return fmt.Sprintf("%.0f", ratio)
	case ratio >= 0.01 || ratio == 0:
		return fmt.Sprintf("%.2f", ratio)
	}
	return fmt.Sprintf("%.2g", ratio)
}

func (t Table) line(lead []any, cell func(Column) string) {
	for _, text := range lead {
		fmt.Printf("| %v ", text)
	}
	for _, c := range t.Columns {
		fmt.Printf("| %s ", cell(c))
	}
	fmt.Println("|")
}
