package lookup_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
	"github.com/tributary-go/tributary/store"
)

// patience is how long a test waits for what must come; it is long because the machine may be busy.
const patience = time.Minute

// node is the sources of node-1 that run, and look-ups of their pods.
type node struct {
	*sources.Sources
	*lookup.Lookup
	stop func() // ends Run, and waits for it
}

// start runs a node until the test ends. Its updates are read.
func start(t testing.TB, lookups []lookup.Option, inputs ...sources.Option) *node {
	pods := sources.New("node-1", inputs...)
	n := &node{Sources: pods, Lookup: lookup.New(pods, lookups...)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go n.Status() // which any goroutine may ask for at any time
	go func() { ended <- n.Lookup.Run(ctx) }()
	stopped := false
	n.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(t, <-ended)
	}
	t.Cleanup(n.stop)
	return n
}

// scripted is a source whose states a test sets.
type scripted struct {
	name   string
	states chan sources.Pods
}

func newScripted(name string) *scripted { return &scripted{name, make(chan sources.Pods)} }

func (s *scripted) Name() string           { return s.name }
func (s *scripted) Report() sources.Report { return sources.Report{} }

func (s *scripted) Run(ctx context.Context, sink *sources.Sink) error {
	for {
		select {
		case now := <-s.states:
			sink.Set(now)
		case <-ctx.Done():
			return nil
		}
	}
}

// set sets a state twice, so that the first one has been taken in when set returns.
func (s *scripted) set(t testing.TB, pods ...*corev1.Pod) {
	t.Helper()
	var all store.Indexer[*corev1.Pod]
	require.NoError(t, all.Replace(store.Items(pods...), store.At("")))
	for range 2 {
		select {
		case s.states <- all.Snapshot():
		case <-time.After(patience):
			require.FailNow(t, "the source is blocked")
		}
	}
}

// holder is a source that is a MirrorHolder.
type holder struct{ *scripted }

func (holder) HoldsMirrors() {}

// watched is a source that is a StatusHolder.
type watched struct{ *scripted }

func (watched) HoldsStatus() {}

func podOf(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "v1"}}},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func uid(uid string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.UID = types.UID(uid) }
}

func annotation(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func version(version string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.ResourceVersion = version }
}

func created(second int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.Unix(second, 0) }
}
