package sources_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/store"
)

// patience is how long a test waits for what must come; it is long because the machine may be busy.
const patience = time.Minute

// rig is sources that run, and their one reader: the test.
type rig struct {
	*sources.Sources
	t    *testing.T
	stop context.CancelFunc
	err  error         // of Run
	done chan struct{} // Run has returned
}

// start runs sources of node-1 until the test ends.
func start(t *testing.T, options ...sources.Option) *rig {
	ctx, cancel := context.WithCancel(context.Background())
	r := &rig{Sources: sources.New("node-1", options...), t: t, stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.err = r.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		for range r.Updates() {
		}
		<-r.done
	})
	return r
}

// next is the next update, in one line.
func (r *rig) next() string {
	r.t.Helper()
	return describe(r.update())
}

func (r *rig) update() sources.PodUpdate {
	r.t.Helper()
	select {
	case u, open := <-r.Updates():
		require.True(r.t, open, "Updates is closed")
		return u
	case <-time.After(patience):
		require.FailNow(r.t, "no update came", "status: %+v", r.Status())
		panic("unreachable")
	}
}

// expect wants these updates, in this order, as describe has them.
func (r *rig) expect(lines ...string) {
	r.t.Helper()
	for _, line := range lines {
		require.Equal(r.t, line, r.next())
	}
}

// problem waits until the one source has a problem with this text, and returns its whole text.
func (r *rig) problem(text string) string {
	r.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(2 * time.Millisecond) {
		for _, status := range r.Status() {
			for _, problem := range status.Problems {
				if strings.Contains(problem.Error(), text) {
					return problem.Error()
				}
			}
		}
	}
	require.FailNow(r.t, "no problem says "+text, "%+v", r.Status())
	return ""
}

// healthy waits until no source has a problem.
func (r *rig) healthy() {
	r.t.Helper()
	r.healthyBut("\x00")
}

// healthyBut waits until no source has a problem but those with this text.
func (r *rig) healthyBut(text string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		for _, status := range r.Status() {
			for _, problem := range status.Problems {
				if !strings.Contains(problem.Error(), text) {
					return false
				}
			}
		}
		return true
	}, patience, 5*time.Millisecond)
}

// describe is an update in one line: ADD file kube-system/etcd-node-1=image:1.
func describe(u sources.PodUpdate) string {
	var line strings.Builder
	fmt.Fprintf(&line, "%s %s", u.Op, u.Source)
	for _, pod := range u.Pods {
		fmt.Fprintf(&line, " %s=%s", strings.TrimPrefix(store.KeyOf(pod), "default/"), pod.Spec.Containers[0].Image)
	}
	return line.String()
}

// manifestOf is a manifest of one pod; more is further lines of its metadata, indented.
func manifestOf(name, image string, more ...string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\n" + strings.Join(more, "") +
		"spec:\n  containers:\n  - name: main\n    image: " + image + "\n"
}

// put replaces a file by a rename. It looks old, so that it is taken at once.
func put(t *testing.T, path, content string) {
	t.Helper()
	temporary := filepath.Join(filepath.Dir(path), ".put-"+filepath.Base(path))
	require.NoError(t, os.WriteFile(temporary, []byte(content), 0o600))
	age(t, temporary)
	require.NoError(t, os.Rename(temporary, path))
}

// age makes a file look as if it had been written some time ago; each time is another one.
func age(t *testing.T, path string) {
	t.Helper()
	ages.Lock()
	defer ages.Unlock()
	ages.next = ages.next.Add(time.Second)
	require.NoError(t, os.Chtimes(path, ages.next, ages.next))
}

var ages = struct {
	sync.Mutex
	next time.Time
}{next: time.Now().Add(-240 * time.Hour)}

// overwrite writes a file in place, as careless writers do.
func overwrite(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

// logLines is a logger whose lines are kept.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lines = append(l.lines, prefix+" "+args)
	}, funcr.Options{Verbosity: 9})
}

func (l *logLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// scripted is a source whose states a test sets.
type scripted struct {
	name   string
	states chan sources.Pods
	ends   chan error // what Run is to return
	report atomic.Pointer[sources.Report]
}

func newScripted(name string) *scripted {
	return &scripted{name: name, states: make(chan sources.Pods), ends: make(chan error)}
}

func (s *scripted) Name() string { return s.name }

func (s *scripted) Report() sources.Report {
	if report := s.report.Load(); report != nil {
		return *report
	}
	return sources.Report{}
}

// tell makes this the source's report.
func (s *scripted) tell(report sources.Report) { s.report.Store(&report) }

func (s *scripted) Run(ctx context.Context, sink *sources.Sink) error {
	for {
		select {
		case now := <-s.states:
			sink.Set(now)
		case err := <-s.ends:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// set hands over a state, which must not wait for anybody who reads.
func (s *scripted) set(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	select {
	case s.states <- stateOf(t, pods...):
	case <-time.After(patience):
		require.FailNow(t, "the source is blocked")
	}
}

func stateOf(t testing.TB, pods ...*corev1.Pod) sources.Pods {
	var all store.Indexer[*corev1.Pod]
	require.NoError(t, all.Replace(store.Items(pods...), store.At("")))
	return all.Snapshot()
}
