package metrics_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/metrics"
)

type state struct {
	ready bool
	at    time.Time
	parts map[string]int
}

// TestTable: each row has its value in the state, and those of parts have one more label.
func TestTable(t *testing.T) {
	table := metrics.NewTable([]string{"name"},
		metrics.Gauge("ready", "Ready.", func(s state) bool { return s.ready }),
		metrics.Gauge("at", "When.", func(s state) time.Time { return s.at }),
		metrics.Gauge("age", "How long.", func(state) time.Duration { return 1500 * time.Millisecond }),
		metrics.When(func(s state) bool { return s.ready },
			metrics.Counter("signed", "Signed.", func(state) int64 { return -1 }),
			metrics.Counter("unsigned", "Unsigned.", func(state) uint64 { return 2 }),
			metrics.Counter("real", "Real.", func(state) float64 { return 0.5 })),
		metrics.By("part", func(s state) map[string]int { return s.parts },
			metrics.Gauge("part", "A part.", metrics.Itself[int]),
			metrics.By("half", func(n int) map[string]int { return map[string]int{"1": n / 2} },
				metrics.Gauge("half", "Half of it.", metrics.Itself[int]))),
	)
	type sample struct {
		labels, values []string
		counter        bool
		value          float64
	}
	shown := func(s state) map[string]sample {
		all := map[string]sample{}
		for _, s := range table(s, "pods") {
			require.NotEmpty(t, s.Metric.Help)
			all[s.Metric.Name+s.Labels[len(s.Labels)-1]] = sample{s.Metric.Labels, s.Labels, s.Metric.Counter, s.Value}
		}
		return all
	}
	name, pods := []string{"name"}, []string{"pods"}
	require.Equal(t, map[string]sample{
		"readypods": {name, pods, false, 0},
		"agepods":   {name, pods, false, 1.5},
	}, shown(state{}))
	require.Equal(t, map[string]sample{
		"readypods":    {name, pods, false, 1},
		"atpods":       {name, pods, false, 7.25},
		"agepods":      {name, pods, false, 1.5},
		"signedpods":   {name, pods, true, -1},
		"unsignedpods": {name, pods, true, 2},
		"realpods":     {name, pods, true, 0.5},
		"parta":        {[]string{"name", "part"}, []string{"pods", "a"}, false, 4},
		"half1":        {[]string{"name", "part", "half"}, []string{"pods", "a", "1"}, false, 2},
	}, shown(state{ready: true, at: time.UnixMilli(7250), parts: map[string]int{"a": 4}}))
}
