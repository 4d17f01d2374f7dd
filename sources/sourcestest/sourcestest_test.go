package sourcestest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/sourcestest"
	"github.com/tributary-go/tributary/store"
)

// declared is a source of what a test declares, with a fault.
type declared struct {
	fault string
	now   chan struct{}

	mu     sync.Mutex // guards what follows
	names  []string
	broken bool
	errors int
}

func (d *declared) Name() string { return "declared" }

func (d *declared) change(broken bool, names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken, d.names = broken, names
	if broken {
		d.errors++
	}
	select {
	case d.now <- struct{}{}:
	default:
	}
}

func (d *declared) Report() sources.Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	report := sources.Report{Mode: "test", LastContact: time.Now(), Errors: d.errors}
	if d.broken && d.fault != "hides its problem" {
		report.Problems = []error{errors.New("broken")}
	}
	return report
}

func (d *declared) Run(ctx context.Context, sink *sources.Sink) error {
	var all store.Indexer[*corev1.Pod]
	for {
		d.set(sink, &all)
		select {
		case <-d.now:
		case <-ctx.Done():
			if d.fault == "fails at the end" {
				return ctx.Err()
			}
			return nil
		}
	}
}

func (d *declared) set(sink *sources.Sink, all *store.Indexer[*corev1.Pod]) {
	d.mu.Lock()
	broken, names := d.broken, d.names
	d.mu.Unlock()
	if broken && d.fault != "loses its pods" {
		return
	}
	if d.fault == "writes into its pods" {
		for _, pod := range all.Snapshot().All() {
			pod.Labels = map[string]string{"a": "b"}
		}
	}
	var pods []*corev1.Pod
	for _, name := range names {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	}
	if len(pods) > 0 || d.fault != "does not tell of nothing" {
		_ = all.Replace(store.Items(pods...), store.At(""))
		sink.Set(all.Snapshot())
	}
}

const withFault = "TRIBUTARY_TEST_FAULT"

// shortPatience is enough for a source that is told of each change.
const shortPatience = 200 * time.Millisecond

func TestGoodSource(t *testing.T) {
	sourcestest.Run(t, func(*testing.T) sourcestest.Rig {
		d := &declared{fault: os.Getenv(withFault), now: make(chan struct{}, 1)}
		patience := time.Duration(0) // the default
		if d.fault != "" {
			patience = shortPatience
		}
		return sourcestest.Rig{
			Source:   d,
			Patience: patience,
			Declare:  func(names ...string) { d.change(false, names) },
			Break:    func() { d.change(true, nil) },
		}
	})
}

// TestFaultsAreFound runs the suite, in a process of its own, on sources that break a rule each.
func TestFaultsAreFound(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for _, row := range []struct{ fault, test, want string }{
		{"fails at the end", "an_ended_context", "Received unexpected error"},
		{"hides its problem", "what_cannot_be_read_at_first", "there is a problem in the report: true"},
		{"loses its pods", "what_cannot_be_read_at_first", "a state was set, but nothing could be read"},
		{"writes into its pods", "pods_are_left_alone", "a pod was modified after it had been set"},
		{"does not tell of nothing", "an_empty_first_state", "the state does not follow"},
	} {
		t.Run(row.fault, func(t *testing.T) {
			t.Parallel()
			suite := exec.CommandContext(t.Context(), self, "-test.run=^TestGoodSource$/"+row.test, "-test.timeout=2m")
			suite.Env = append(os.Environ(), withFault+"="+row.fault)
			output, err := suite.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(output), row.want)
		})
	}
}
