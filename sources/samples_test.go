package sources

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/internal/limit"
	"github.com/tributary-go/tributary/sources/manifest"
)

// values has the samples by name and labels.
func values(r metrics.Reporter) map[string]float64 {
	all := map[string]float64{}
	for s := range r.Samples("node-1") {
		all[fmt.Sprint(s.Metric.Name, s.Labels)] = s.Value
	}
	return all
}

// full is a Status of which each field says something.
func full() Status {
	at := time.Unix(1, 0)
	return Status{
		Source: "api", Optional: true, Phase: reflector.Stopped, Seen: true, Pods: 1, LastSet: at, Restored: true, Pending: 2, Lag: time.Second, Missed: 7,
		Updates: map[Op]int{Add: 3}, Reflector: &reflector.Status{Phase: reflector.Watching, ProvenAt: at, Events: 4},
		Report: Report{
			Mode: "watch", LastContact: at, StaleAfter: time.Minute, Problems: []error{access.Mark("may_be_old", errors.New("old"))}, Complete: true, Skipped: 5, Errors: 6,
			Doubt: errors.New("nobody knows"), ProvenAt: at,
			Warnings: []error{access.Mark("foreign", errors.New("a README"))},
		},
	}
}

// eachField calls visit with each field of a Status and of its Report.
func eachField(s *Status, visit func(name string, field reflect.Value)) {
	for _, v := range []reflect.Value{reflect.ValueOf(s).Elem(), reflect.ValueOf(&s.Report).Elem()} {
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Report" {
				visit(name, v.Field(i))
			}
		}
	}
}

// TestEachFieldOfAStatusIsShown: the samples change with every field, but for texts.
func TestEachFieldOfAStatusIsShown(t *testing.T) {
	s := full()
	eachField(&s, func(name string, field reflect.Value) {
		require.False(t, field.IsZero(), "%s is not set in this test: set it, sum it up and show it", name)
		if name == "Source" || name == "Mode" {
			return
		}
		before := values(s)
		was := reflect.New(field.Type()).Elem()
		was.Set(field)
		field.SetZero()
		require.NotEqual(t, before, values(s), "%s is not shown", name)
		field.Set(was)
	})
	require.Equal(t, values(full()), values(s))
}

// TestSumOfSourcesLosesNoField: the sum of one Status is that Status, whatever fields there are.
func TestSumOfSourcesLosesNoField(t *testing.T) {
	require.Equal(t, full(), sum([]Status{full()}), "of one")
}

func TestSumOfSourcesIsAsWellAsTheWorst(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	well := Status{
		Source: "api", Phase: reflector.Watching, Seen: true, Pods: 1, LastSet: late, Updates: map[Op]int{Add: 1},
		Reflector: &reflector.Status{Phase: reflector.Watching, Synced: true, ProvenAt: late, Class: reflector.OK, Events: 1},
		Report:    Report{Mode: "watch", LastContact: late, StaleAfter: time.Minute, Skipped: 1, Errors: 1},
	}
	ill := Status{
		Source: "api", Phase: reflector.Stopped, Pods: 2, LastSet: early, Restored: true, Pending: 1, Lag: time.Second, Updates: map[Op]int{Add: 1, Remove: 1},
		Reflector: &reflector.Status{Phase: reflector.Waiting, ProvenAt: early, Class: reflector.OK, Events: 2},
		Report: Report{
			Mode: "watch", LastContact: early, StaleAfter: time.Minute, Problems: []error{access.Mark("may_be_old", errors.New("old"))}, Skipped: 2, Errors: 2,
		},
	}
	want := Status{
		Source: "api", Phase: reflector.Stopped, Pods: 3, LastSet: early, Restored: true, Pending: 1, Lag: time.Second, Updates: map[Op]int{Add: 2, Remove: 1},
		Reflector: &reflector.Status{Phase: reflector.Waiting, ProvenAt: early, Class: reflector.OK, Events: 3, Lists: map[reflector.Class]int{}},
		Report: Report{
			Mode: "watch", LastContact: early, StaleAfter: time.Minute, Problems: []error{access.Mark("may_be_old", errors.New("old"))}, Skipped: 3, Errors: 3,
		},
	}
	// The sum of reflectors remembers its parts, in their order, for the verdict.
	flat := func(s Status) Status {
		s.Reflector = &reflector.Status{
			Phase: s.Reflector.Phase, ProvenAt: s.Reflector.ProvenAt, Class: s.Reflector.Class, Events: s.Reflector.Events, Lists: s.Reflector.Lists,
		}
		return s
	}
	require.Equal(t, want, flat(sum([]Status{well, ill})))
	require.Equal(t, want, flat(sum([]Status{ill, well})))
	never := well
	never.StaleAfter, never.LastContact = 0, early
	require.Equal(t, well.StaleAfter, sum([]Status{never, well}).StaleAfter, "the one that can become stale counts")

	both := joined([]Status{well, {Source: "file"}, ill})
	require.Len(t, both, 2)
	require.Equal(t, want, flat(both[0]))
	require.Equal(t, "file", both[1].Source)
}

// TestClassesOfProblems: every class is one word, and problems of files, URLs and API servers that
// mean the same have the same class.
func TestClassesOfProblems(t *testing.T) {
	decoder := manifest.Decoder{Node: "node-1", Source: FileSource}
	_, rejected := decoder.Decode("/m.yaml", []byte("kind: Pod\n"))
	require.NotEmpty(t, rejected)
	client, err := access.NewClient("http://localhost", access.Default())
	require.NoError(t, err)
	refused := func(status int) error {
		return fmt.Errorf("http://localhost: %w", client.Refusal(status, http.NoBody))
	}
	for want, problem := range map[string]error{
		"undecodable":  rejected[0],
		"not_found":    access.Missing("/m"),
		"forbidden":    &fs.PathError{Op: "open", Path: "/m", Err: fs.ErrPermission},
		"refused":      fmt.Errorf("/m: %w", limit.ErrTooLarge),
		"unauthorized": refused(401),
		"throttled":    refused(429),
		"server_error": refused(503),
		"checkpoint":   access.Mark("checkpoint", fs.ErrPermission),
		"ended":        access.Mark(string(reflector.Ended), errors.New("gone")),
		"overdue":      access.Mark(classOverdue, errors.New("late")),
		"unreachable":  &url.Error{Op: "Get", URL: "http://localhost", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}},
		"unknown":      errors.New("what a source of your own says"),
	} {
		require.Equal(t, want, classOf(problem))
	}
	require.Equal(t, []string{"forbidden", "not_found", "refused", "refused"},
		[]string{classOf(refused(403)), classOf(refused(404)), classOf(refused(400)), classOf(refused(302))})
}

// TestSamplesMayBeLeft: whoever ranges over them may stop at any.
func TestSamplesMayBeLeft(t *testing.T) {
	s := New("node-1", File(t.TempDir()))
	all := slices.Collect(s.Samples("node-1"))
	require.Greater(t, len(all), 10)
	for n := range all {
		for range s.Samples("node-1") {
			if n--; n < 0 {
				break
			}
		}
	}
	require.NotContains(t, slices.Collect(maps.Keys(values(s))), "tributary_sources_last_contact_timestamp_seconds[node-1 file]")
}
