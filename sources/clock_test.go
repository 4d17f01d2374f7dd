package sources_test

import (
	"errors"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
)

// ago is a moment that was some time ago by each of the two clocks of a [time.Time].
func ago(wall, monotonic time.Duration) time.Time {
	at := time.Now().Add(-wall)
	(*struct { // as in package time, which has no way to set one clock alone
		wall      uint64
		monotonic int64
	})(unsafe.Pointer(&at)).monotonic += int64(wall - monotonic)
	return at
}

// TestAgesAreOfTheClockThatSaysMore: wall time may be set back, and monotonic time stands still
// while a machine is suspended.
func TestAgesAreOfTheClockThatSaysMore(t *testing.T) {
	for name, row := range map[string]struct {
		heard time.Time
		want  reflector.Class
	}{
		"heard a moment ago":         {ago(time.Second, time.Second), reflector.OK},
		"the clock was set back":     {ago(-50*time.Minute, 10*time.Minute), reflector.Stale},
		"the machine was suspended":  {ago(10*time.Minute, time.Second), reflector.Stale},
		"the time is of another run": {time.Now().Add(-10 * time.Minute).Round(0), reflector.Stale},
	} {
		for kind, report := range map[string]sources.Report{
			"heard":   {LastContact: row.heard, StaleAfter: time.Minute},
			"doubted": {LastContact: time.Now(), ProvenAt: row.heard, Doubt: errors.New("a doubt"), StaleAfter: time.Minute},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				s := sources.Status{Source: "s", Seen: true, Phase: reflector.Watching, Report: report}
				require.Equal(t, row.want, s.Verdict(time.Minute).Class)
				stale := slices.ContainsFunc(slices.Collect(s.Samples("all")), func(m metrics.Sample) bool {
					return m.Metric.Name == "tributary_sources_stale" && m.Value == 1
				})
				require.Equal(t, row.want == reflector.Stale, stale)
			})
		}
	}
}
