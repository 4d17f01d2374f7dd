package robustness_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/robustness"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/internal/histories"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// reading is one recording with what goes with it.
type reading struct {
	key       string
	contents  *contents
	recording *histories.Recording
}

// awaited is a reader of one key, or of all, with the version up to which it has been told
// everything; empty while it is behind.
type awaited struct {
	key      string
	complete func() string
	content  func() store.Snapshot[object]
}

// readers are all that read one server.
type readers struct {
	t        *testing.T
	config   *rest.Config
	liveness time.Duration
	all      []reading
	running  sync.WaitGroup
	stop     context.CancelFunc
	ctx      context.Context
	awaited  []awaited
}

func startReaders(t *testing.T, config *rest.Config, liveness time.Duration) *readers {
	t.Helper()
	r := &readers{t: t, config: config, liveness: liveness}
	r.ctx, r.stop = context.WithCancel(context.Background())
	t.Cleanup(r.end)
	r.reflector("protobuf", "", nil)
	r.reflector("JSON", "", []reflector.Option{reflector.WithPageSize(4)}, listwatch.WithJSON())
	r.reflector("one object", "k1", nil)
	r.informer()
	return r
}

func (r *readers) end() { r.stop(); r.running.Wait() }

func (r *readers) source(key string, options ...listwatch.Option) listwatch.ListerWatcher[object] {
	r.t.Helper()
	client, err := listwatch.NewRESTClient(rest.CopyConfig(r.config), corev1.SchemeGroupVersion)
	require.NoError(r.t, err)
	options = append(options, listwatch.InNamespace(namespace))
	if key != "" {
		options = append(options, listwatch.Fields(fields.OneTermEqualSelector("metadata.name", key)))
	}
	return listwatch.FromClient[corev1.ConfigMap](client, "configmaps", options...)
}

func (r *readers) options(more ...reflector.Option) []reflector.Option {
	return append(more, reflector.WithWatchTimeout(3*time.Second), reflector.WithLiveness(r.liveness))
}

// reflector starts one that is recorded at both ends.
func (r *readers) reflector(name, key string, more []reflector.Option, options ...listwatch.Option) {
	r.t.Helper()
	r.follow(name, key, r.source(key, options...), more...)
}

// follow starts a reflector of a source.
func (r *readers) follow(name, key string, from listwatch.ListerWatcher[object], more ...reflector.Option) {
	r.t.Helper()
	given, kept := newContents(), newContents()
	source, ofSource := histories.RecordSource(name+": source", listwatch.ListerWatcher[object](seenSource{from, given}))
	held := store.NewIndexer[object]()
	st, ofStore := histories.RecordStore(name+": store", store.Store[object](seenStore{held, kept}))
	if key != "" {
		key = store.Key(namespace, key)
	}
	r.all = append(r.all, reading{key, given, ofSource}, reading{key, kept, ofStore})
	reading := reflector.New(source, st, r.options(more...)...)
	r.running.Go(func() {
		if err := reading.Run(r.ctx); err != nil {
			r.t.Errorf("%s: %v", name, err)
		}
	})
	r.awaited = append(r.awaited, awaited{key, func() string { return reading.Status().ResourceVersion }, held.Snapshot})
}

// informer starts one with a handler that keeps up, and two that fall behind.
func (r *readers) informer() {
	r.t.Helper()
	inf := informer.New(r.source(""), informer.WithRing(16), informer.WithReflector(r.options()...))
	for name, pause := range map[string]time.Duration{"handler": 0, "slow handler": 20 * time.Millisecond, "slower handler": 200 * time.Millisecond} {
		seen := newContents()
		told, recording := histories.RecordHandler[object](name)
		handler, err := inf.AddHandler(func(e informer.Event[object]) {
			seen.see(e.Old)
			seen.see(e.New)
			told(e.Old, e.New, e.Initial || e.Missed)
			if pause > 0 {
				<-time.After(rand.N(pause)) // a handler that takes its time is the experiment
			}
		})
		require.NoError(r.t, err)
		r.all = append(r.all, reading{"", seen, recording})
		complete := func() string {
			// Before the lag: events up to here are in the ring.
			version := inf.Status().ResourceVersion
			if handler.Lag().Events > 0 {
				return ""
			}
			return version
		}
		r.awaited = append(r.awaited, awaited{"", complete, inf.Snapshot})
		r.running.Go(func() {
			ticker := time.NewTicker(50 * time.Millisecond)
			defer ticker.Stop()
			for r.ctx.Err() == nil {
				select {
				case <-r.ctx.Done():
				case <-ticker.C:
				}
				if version := complete(); version != "" {
					recording.Bookmark(version)
				}
			}
		})
	}
	r.running.Go(func() {
		if err := inf.Run(r.ctx); err != nil {
			r.t.Errorf("informer: %v", err)
		}
	})
}

// await waits until all have been told what was persisted.
func (r *readers) await(persisted []robustness.Persisted) {
	r.t.Helper()
	for i, one := range r.awaited {
		last := uint64(0)
		for _, p := range persisted {
			if one.key == "" || one.key == p.Key {
				last = number(p.ResourceVersion)
			}
		}
		require.Eventually(r.t, func() bool { return number(one.complete()) >= last }, time.Minute, 20*time.Millisecond,
			"reader %d of %q is at %s, not %d", i, one.key, one.complete(), last)
	}
	r.agree(stateAfter(persisted))
}

// stateAfter is the version of each object after all writes.
func stateAfter(persisted []robustness.Persisted) map[string]string {
	state := map[string]string{}
	for _, p := range persisted {
		apply(state, p.Change)
	}
	return state
}

// agree waits until all hold a state, the version of each object.
func (r *readers) agree(state map[string]string) {
	r.t.Helper()
	for i, one := range r.awaited {
		want := maps.Clone(state)
		maps.DeleteFunc(want, func(key, _ string) bool { return one.key != "" && one.key != key })
		holds := func() map[string]string {
			now := map[string]string{}
			for key, obj := range one.content().All() {
				now[key] = obj.ResourceVersion
			}
			return now
		}
		if !assert.Eventually(r.t, func() bool { return maps.Equal(want, holds()) }, time.Minute, 20*time.Millisecond) {
			require.Equal(r.t, want, holds(), "reader %d of %q", i, one.key)
		}
	}
}

func apply(objects map[string]string, c histories.Change) {
	if delete(objects, c.Key); c.Type != watch.Deleted {
		objects[c.Key] = c.ResourceVersion
	}
}

// histories ends the readers and returns what they were told.
func (r *readers) histories() []robustness.Reader {
	r.t.Helper()
	r.end()
	all := make([]robustness.Reader, 0, len(r.all))
	for _, one := range r.all {
		seen, conflicts := one.contents.all()
		h := one.recording.History()
		require.Empty(r.t, conflicts, "%s: one version with two contents", h.Reader)
		all = append(all, robustness.Reader{History: h, Key: one.key, Contents: seen})
	}
	return all
}
