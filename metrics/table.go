package metrics

import (
	"slices"
	"time"
)

// Table makes the samples of a reporter in state S, given the values of the table's labels.
type Table[S any] func(state S, labels ...string) []Sample

// Row declares a metric with the function that takes its value from S.
type Row[S any] func(labels []string) Table[S]

// Value is a value that a metric may show: a truth as 0 or 1, a duration in seconds, a time in
// seconds since 1970. The zero time has no sample.
type Value interface {
	bool | int | int64 | uint64 | float64 | time.Duration | time.Time
}

// NewTable makes a table with these labels, the first of which is for the reporter's name.
func NewTable[S any](labels []string, rows ...Row[S]) Table[S] {
	var tables []Table[S]
	for _, row := range rows {
		tables = append(tables, row(labels))
	}
	return func(state S, values ...string) (samples []Sample) {
		for _, t := range tables {
			samples = append(samples, t(state, values...)...)
		}
		return samples
	}
}

// Gauge declares a number that grows and falls.
func Gauge[S any, V Value](name, help string, value func(S) V) Row[S] {
	return rowOf(Metric{Name: name, Help: help}, value)
}

// Counter declares a number that only grows, but for restarts.
func Counter[S any, V Value](name, help string, value func(S) V) Row[S] {
	return rowOf(Metric{Name: name, Help: help, Counter: true}, value)
}

func rowOf[S any, V Value](m Metric, value func(S) V) Row[S] {
	return func(labels []string) Table[S] {
		m := m
		m.Labels = labels
		return func(state S, values ...string) []Sample {
			if n, ok := number(value(state)); ok {
				return []Sample{{&m, values, n}}
			}
			return nil
		}
	}
}

// By declares metrics of the parts of a state, with one more label for the name of the part.
func By[S, P any](label string, parts func(S) map[string]P, rows ...Row[P]) Row[S] {
	return func(labels []string) Table[S] {
		table := NewTable(append(slices.Clip(labels), label), rows...)
		return func(state S, values ...string) (samples []Sample) {
			for name, part := range parts(state) {
				samples = append(samples, table(part, append(slices.Clip(values), name)...)...)
			}
			return samples
		}
	}
}

// When declares metrics that are shown while a condition holds.
func When[S any](holds func(S) bool, rows ...Row[S]) Row[S] {
	return func(labels []string) Table[S] {
		table := NewTable(labels, rows...)
		return func(state S, values ...string) []Sample {
			if !holds(state) {
				return nil
			}
			return table(state, values...)
		}
	}
}

// Itself is the value of a part that is a number already.
func Itself[V Value](v V) V { return v }

// number is false for the zero time.
func number(value any) (n float64, ok bool) {
	switch v := value.(type) {
	case bool:
		if v {
			n = 1
		}
	case int:
		n = float64(v)
	case int64:
		n = float64(v)
	case uint64:
		n = float64(v)
	case float64:
		n = v
	case time.Duration:
		n = v.Seconds()
	case time.Time:
		return float64(v.UnixMilli()) / 1000, !v.IsZero()
	}
	return n, true
}
