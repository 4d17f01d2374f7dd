package age_test

import (
	"errors"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/internal/age"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/refs"
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

// TestAgesAreOfTheClockThatSaysMore, in each verdict that asks for a proof.
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
		require.Equal(t, row.want == reflector.Stale, age.Of(row.heard) > time.Minute, name)
		copied := reflector.Status{Phase: reflector.Watching, Synced: true, ProvenAt: row.heard, ResourceVersion: "1"}
		require.Equal(t, row.want, copied.Verdict(time.Minute).Class, "%s: a reflector", name)
		require.Equal(t, row.want, refs.Status{Phase: reflector.Watching, LastContact: row.heard}.Verdict(time.Minute).Class, "%s: refs", name)
		for kind, s := range map[string]sources.Status{
			"heard":     {Report: sources.Report{LastContact: row.heard}},
			"doubted":   {Report: sources.Report{LastContact: time.Now(), ProvenAt: row.heard, Doubt: errors.New("a doubt")}},
			"reflected": {Reflector: &copied},
		} {
			s.Source, s.Seen, s.Phase, s.StaleAfter = "s", true, reflector.Watching, time.Minute
			require.Equal(t, row.want, s.Verdict(time.Minute).Class, "%s: a source, %s", name, kind)
			stale := slices.ContainsFunc(slices.Collect(s.Samples("all")), func(m metrics.Sample) bool {
				return m.Metric.Name == "tributary_sources_stale" && m.Value == 1
			})
			require.Equal(t, row.want == reflector.Stale, stale, "%s: a source, %s", name, kind)
		}
	}
}
