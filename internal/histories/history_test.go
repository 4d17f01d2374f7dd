package histories_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/internal/histories"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// recorded holds the writes of a random run, and what each kind of reader was told.
type recorded struct {
	changes                      []histories.Change
	source, store, handler, slow histories.History
}

func (r recorded) each() []histories.History {
	return []histories.History{r.source, r.store, r.handler, r.slow}
}

// record writes random changes, under faults, to a collection that a reflector and an informer
// read.
func record(t *testing.T, seed uint64, steps int) (r recorded) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 0))
		pods := listwatchtest.New(t, listwatchtest.Pods(), watchcache.WithWindow(64), watchcache.WithBookmarkInterval(time.Second))
		writes := histories.Follow(pods.Origin())
		source, given := histories.RecordSource("source", pods.ListerWatcher())
		held, kept := histories.RecordStore("store", store.Store[*corev1.Pod](store.NewIndexer[*corev1.Pod]()))
		copied := reflector.New(source, held)
		inf := informer.New[*corev1.Pod](pods.ListerWatcher(), informer.WithRing(8))
		handler, handled := handle(t, inf, "handler", 0)
		_, slowly := handle(t, inf, "slow handler", 600*time.Millisecond) // it falls behind

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- copied.Run(ctx) }()
		go func() { ended <- inf.Run(ctx) }()
		for range steps {
			misbehave(pods, random)
			write(t, pods, random)
			time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
			if version := inf.Status().ResourceVersion; handler.Lag().Events == 0 && random.IntN(5) == 0 && version != "" {
				handled.Bookmark(version)
			}
		}
		time.Sleep(10 * time.Minute) // every reader catches up
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
		r = recorded{writes.Changes(), given.History(), kept.History(), handled.History(), slowly.History()}
	})
	return r
}

// handle records a handler that sleeps for each event.
func handle(t *testing.T, inf *informer.Informer[*corev1.Pod], name string, pause time.Duration) (*informer.Handler[*corev1.Pod], *histories.Recording) {
	t.Helper()
	told, recording := histories.RecordHandler[*corev1.Pod](name)
	handler, err := inf.AddHandler(func(e informer.Event[*corev1.Pod]) {
		told(e.Old, e.New, e.Initial || e.Missed)
		time.Sleep(pause)
	})
	require.NoError(t, err)
	return handler, recording
}

func misbehave(pods *listwatchtest.Collection[*corev1.Pod], random *rand.Rand) {
	switch random.IntN(60) {
	case 0:
		pods.Disconnect()
	case 1:
		pods.Expire()
	case 2:
		pods.Truncate()
	case 3:
		pods.Delay(time.Second)
	case 4:
		stale := pods.Stale()
		time.AfterFunc(5*time.Second, stale.Lift)
		pods.Disconnect()
	}
}

func write(t *testing.T, pods *listwatchtest.Collection[*corev1.Pod], random *rand.Rand) {
	t.Helper()
	p := pod(fmt.Sprint("p", random.IntN(8)))
	_, err := pods.Origin().Get(p.Namespace, p.Name)
	switch {
	case err != nil:
		pods.Create(p)
	case random.IntN(4) == 0:
		pods.Remove(p)
	default:
		p.Labels = map[string]string{"n": fmt.Sprint(random.Int())}
		pods.Update(p)
	}
}

// TestReadersKeepTheProperties: the histories of a source, a store and a handler hold under every
// fault.
func TestReadersKeepTheProperties(t *testing.T) {
	lists, empty := 0, 0
	for range 12 {
		seed := rand.Uint64()
		r := record(t, seed, 300)
		require.NoError(t, histories.Check(r.changes, r.each()...), "seed %d", seed)
		require.NoError(t, histories.Check(nil, r.each()...), "seed %d", seed)
		for _, h := range r.each() {
			lists += len(h.Streams)
			for _, s := range h.Streams {
				if len(s.Told) == 0 {
					empty++
				}
			}
		}
	}
	require.Greater(t, lists, 12*4+10, "nobody lists again")
	require.Less(t, empty, lists/2, "most streams bring something")
}

// damages are faults in a history that Check must find. Each needs a stream of at least five
// changes.
var damages = []struct {
	name string
	do   func(told []histories.Change) []histories.Change
	want histories.Property
}{
	{"lost", func(c []histories.Change) []histories.Change { return slices.Delete(c, 2, 3) }, histories.Reliable},
	{"first lost", func(c []histories.Change) []histories.Change { return slices.Delete(c, 0, 1) }, histories.Resumable},
	{"twice", func(c []histories.Change) []histories.Change { return slices.Insert(c, 2, c[1]) }, histories.Unique},
	{"swapped", func(c []histories.Change) []histories.Change { c[1], c[2] = c[2], c[1]; return c }, histories.Ordered},
	{"early bookmark", func(c []histories.Change) []histories.Change {
		return slices.Insert(c, 1, histories.Change{Type: watch.Bookmark, ResourceVersion: c[2].ResourceVersion})
	}, histories.Bookmarkable},
	{"late bookmark", func(c []histories.Change) []histories.Change {
		return append(c, histories.Change{Type: watch.Bookmark, ResourceVersion: c[0].ResourceVersion})
	}, histories.Bookmarkable},
	{"invented", func(c []histories.Change) []histories.Change { c[2].Key = "ns/nobody"; return c }, histories.Reliable},
	{"another type", func(c []histories.Change) []histories.Change {
		c[2].Type = map[watch.EventType]watch.EventType{watch.Added: watch.Modified, watch.Modified: watch.Deleted, watch.Deleted: watch.Added}[c[2].Type]
		return c
	}, histories.Reliable},
}

// damaged damages the first stream with enough changes, after removing its bookmarks.
func damaged(h histories.History, do func([]histories.Change) []histories.Change) (histories.History, bool) {
	out := histories.History{Reader: h.Reader, Streams: slices.Clone(h.Streams)}
	for i, s := range out.Streams {
		told := slices.DeleteFunc(slices.Clone(s.Told), func(c histories.Change) bool { return c.Type == watch.Bookmark })
		if len(told) >= 5 {
			out.Streams[i].Told = do(told)
			return out, true
		}
	}
	return out, false
}

func TestDamageIsNamed(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := record(t, seed, 300)
	for _, h := range []histories.History{r.source, r.store, r.handler} {
		for _, damage := range damages {
			t.Run(h.Reader+"/"+damage.name, func(t *testing.T) {
				broken, ok := damaged(h, damage.do)
				require.True(t, ok, "seed %d: no stream is long enough", seed)
				err := histories.Check(r.changes, broken)
				requireViolation(t, err, damage.want, h.Reader)
			})
		}
	}
}

func requireViolation(t *testing.T, err error, want histories.Property, reader string) {
	t.Helper()
	var v *histories.Violation
	require.ErrorAs(t, err, &v)
	require.Equal(t, want, v.Property, err)
	require.Equal(t, reader, v.Reader)
	require.ErrorContains(t, err, "histories: "+reader+" broke "+string(want))
}

// The changes of the hand-written histories.
var (
	addA = histories.Change{Type: watch.Added, Key: "ns/a", ResourceVersion: "2"}
	addB = histories.Change{Type: watch.Added, Key: "ns/b", ResourceVersion: "5"}
	modA = histories.Change{Type: watch.Modified, Key: "ns/a", ResourceVersion: "7"}
	delA = histories.Change{Type: watch.Deleted, Key: "ns/a", ResourceVersion: "9"}
	delB = histories.Change{Type: watch.Deleted, Key: "ns/b", ResourceVersion: "12"}
	all  = []histories.Change{addA, addB, modA, delA, delB}
)

func bookmarkAt(version string) histories.Change {
	return histories.Change{Type: watch.Bookmark, ResourceVersion: version}
}

func listedAt(version string, objects map[string]string, told ...histories.Change) histories.Stream {
	return histories.Stream{Listed: &histories.State{ResourceVersion: version, Objects: objects}, Told: told}
}

func watchedFrom(version string, told ...histories.Change) histories.Stream {
	return histories.Stream{After: version, Told: told}
}

func TestVerdicts(t *testing.T) {
	both := map[string]string{"ns/a": "2", "ns/b": "5"}
	later := map[string]string{"ns/a": "7", "ns/b": "5"}
	type row struct {
		name    string
		streams []histories.Stream
		want    string // empty: no violation
		alone   string // the same, if the writes are unknown
	}
	for _, r := range []row{
		{"nothing", nil, "", ""},
		{"an empty state of the beginning", []histories.Stream{listedAt("1", nil, all...)}, "", ""},
		{"a list between two writes", []histories.Stream{listedAt("6", both, modA, bookmarkAt("8"), delA)}, "", ""},
		{"a list, and a watch from it", []histories.Stream{listedAt("5", both), watchedFrom("5", modA)}, "", ""},
		{"a watch resumed at a bookmark", []histories.Stream{listedAt("5", both, bookmarkAt("6")), watchedFrom("6", modA)}, "", ""},
		{"a watch resumed from before", []histories.Stream{listedAt("5", both, modA), watchedFrom("5", modA)}, "", ""},
		{"a relist over what was missed", []histories.Stream{listedAt("2", map[string]string{"ns/a": "2"}), listedAt("10", map[string]string{"ns/b": "5"}, delB)}, "", ""},
		{"a state of a handler", []histories.Stream{listedAt("", later, delA)}, "", ""},
		{"an empty state of a handler, late", []histories.Stream{listedAt("", nil)}, "", ""},
		{"half a list", []histories.Stream{listedAt("6", map[string]string{"ns/a": "2"})},
			"histories: r broke atomic in stream 0: version 6: the state lacks ns/b at version 5", ""},
		{"a list of two moments", []histories.Stream{listedAt("6", later)},
			"histories: r broke atomic in stream 0: version 6: the state has ns/a at version 7, not 2", ""},
		{"a list with what is gone", []histories.Stream{listedAt("9", both)},
			"histories: r broke atomic in stream 0: version 9: the state has ns/a at version 2, which did not exist", ""},
		{"a state that never was", []histories.Stream{listedAt("", map[string]string{"ns/a": "7"}, delA)},
			"histories: r broke atomic in stream 0: a state without a version: the collection was never in this state from version 7 on and before the next event: at version 7 the state lacks ns/b at version 5", ""},
		{"a list that goes back", []histories.Stream{listedAt("8", later), listedAt("6", both)},
			"histories: r broke ordered in stream 1: version 6: the state is older than version 8, which the reader was told before",
			"histories: r broke ordered in stream 1: version 6: the state is older than version 8, which the reader was told before"},
		{"a watch that goes on too late", []histories.Stream{listedAt("5", both), watchedFrom("8", delA)},
			"histories: r broke resumable in stream 1: ns/a at version 7: the watch resumes after version 8, but the reader was told nothing newer than 5", ""},
		{"an event lost first", []histories.Stream{listedAt("5", both, delA)},
			"histories: r broke resumable in stream 0: ns/a at version 7: it was MODIFIED, but the reader was told of DELETED ns/a at version 9 instead, as the first event after version 5", ""},
		{"an event of before", []histories.Stream{listedAt("5", both, addB)},
			"histories: r broke resumable in stream 0: ns/b at version 5: there was no such change, as the first event after version 5",
			"histories: r broke reliable in stream 0: ns/b at version 5: it was added, but the reader had it already"},
		{"an event after the last one", []histories.Stream{listedAt("12", nil, bookmarkAt("13"), histories.Change{Type: watch.Added, Key: "ns/c", ResourceVersion: "14"})},
			"histories: r broke reliable in stream 0: ns/c at version 14: there was no such change", ""},
		{"an addition lost", []histories.Stream{listedAt("1", nil, addA, modA)},
			"histories: r broke reliable in stream 0: ns/b at version 5: it was ADDED, but the reader was told of MODIFIED ns/a at version 7 instead", ""},
		{"an addition lost, and its deletion told", []histories.Stream{listedAt("1", nil, addA, delB)},
			"histories: r broke reliable in stream 0: ns/b at version 5: it was ADDED, but the reader was told of DELETED ns/b at version 12 instead",
			"histories: r broke reliable in stream 0: ns/b at version 12: it was DELETED, but the reader did not have it"},
		{"an event lost before a bookmark", []histories.Stream{listedAt("5", both, modA, bookmarkAt("10"))},
			"histories: r broke reliable in stream 0: ns/a at version 9: it was DELETED, but by version 10 the reader was not told of it", ""},
		{"a version that is no number", []histories.Stream{watchedFrom("5", bookmarkAt("x"))},
			"histories: r broke ordered in stream 0: version x: the version is not a decimal number, so it cannot be judged",
			"histories: r broke ordered in stream 0: version x: the version is not a decimal number, so it cannot be judged"},
	} {
		t.Run(r.name, func(t *testing.T) {
			h := histories.History{Reader: "r", Streams: r.streams}
			requireVerdict(t, r.want, histories.Check(all, h))
			requireVerdict(t, r.alone, histories.Check(nil, h))
		})
	}
}

func requireVerdict(t *testing.T, want string, err error) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.EqualError(t, err, want)
}

// TestVerdictsAreBounded: the error about a reader that missed everything stays short.
func TestVerdictsAreBounded(t *testing.T) {
	h := histories.History{Reader: "r"}
	for range 100 {
		h.Streams = append(h.Streams, listedAt("9", nil))
	}
	err := histories.Check(all, h)
	var joined interface{ Unwrap() []error }
	require.True(t, errors.As(err, &joined))
	require.Len(t, joined.Unwrap(), 21)
	require.ErrorContains(t, err, "and 80 more")
}

func TestChangesMustBeInOrder(t *testing.T) {
	require.ErrorContains(t, histories.Check([]histories.Change{addB, addA}), `ADDED ns/a at version "2" follows version 5`)
}

// TestAProbeIsNoState: a reflector asks for the newest version by a list of one object, and keeps
// what it held.
func TestAProbeIsNoState(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	pods.Create(pod("a"))
	source, given := histories.RecordSource("source", pods.ListerWatcher())
	for _, limit := range []int64{1, 0} {
		for _, err := range source.List(t.Context(), metav1.ListOptions{Limit: limit}).Items {
			require.NoError(t, err)
		}
	}
	require.Len(t, given.History().Streams, 1, "the list without a limit")
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
}
