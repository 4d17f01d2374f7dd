package watchcache_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/pagetoken"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// silent is a server whose watches never send a bookmark. It takes a millisecond to tell its newest
// version, and takes to list all objects.
type silent struct {
	*podCache
	takes         time.Duration
	newest, lists atomic.Int64
	breaks        int64 // one in so many lists of all objects ends after the first; zero: none
}

func (s *silent) List(ctx context.Context, options metav1.ListOptions) listwatch.List[*corev1.Pod] {
	asked, takes := &s.lists, s.takes
	if options.Limit == 1 {
		asked, takes = &s.newest, time.Millisecond
	}
	number := asked.Add(1)
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
	list := s.podCache.List(ctx, options)
	if options.Limit == 1 || s.breaks == 0 || number%s.breaks > 0 {
		return list
	}
	return listwatch.List[*corev1.Pod]{Meta: list.Meta, Items: func(yield func(*corev1.Pod, error) bool) {
		for obj, err := range list.Items {
			if !yield(obj, err) {
				return
			}
			break
		}
		yield(nil, io.ErrUnexpectedEOF)
	}}
}

func (s *silent) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	options.AllowWatchBookmarks = false
	return s.podCache.Watch(ctx, options)
}

// origins is a server of pods and of another collection, and a copy of its pods, which hears of
// each write as late as the test likes.
type origins struct {
	t        *testing.T
	revision *watchcache.Revision
	pods     *silent
	copy     *podCache
	behind   []func() // what the copy has not heard of
}

func newOrigins(t *testing.T, options ...watchcache.Option) *origins {
	t.Helper()
	o := &origins{t: t, revision: watchcache.NewRevision()}
	o.pods = &silent{podCache: newCache(t, watchcache.WithRevision(o.revision))}
	o.copy = newCache(t, append(options, watchcache.WithUpstream(watchcache.ServerOf(o.pods)))...)
	t.Cleanup(o.copy.Close)
	require.NoError(t, o.copy.Replace(store.Items[*corev1.Pod](), store.At("1")))
	return o
}

// write makes one write of a pod; the copy will hear of it.
func (o *origins) write(do func(version int) (write func(*podCache) error)) {
	require.NoError(o.t, o.revision.Write(func(version string) (bool, error) {
		number, err := strconv.Atoi(version)
		require.NoError(o.t, err)
		write := do(number)
		o.behind = append(o.behind, func() { require.NoError(o.t, write(o.copy)) })
		return true, write(o.pods.podCache)
	}))
}

func (o *origins) put(name string) {
	o.write(func(version int) func(*podCache) error {
		return func(c *podCache) error { return c.Update(stored(name, version)) }
	})
}

func (o *origins) remove(name string) {
	o.write(func(version int) func(*podCache) error {
		return func(c *podCache) error { return c.Delete(stored(name, version)) }
	})
}

// elsewhere makes a write of another collection.
func (o *origins) elsewhere() {
	require.NoError(o.t, o.revision.Write(func(string) (bool, error) { return true, nil }))
}

// hear has the copy hear of so many writes.
func (o *origins) hear(n int) {
	for _, write := range o.behind[:n] {
		write()
	}
	o.behind = o.behind[n:]
}

func (o *origins) version() string { return strconv.FormatUint(o.revision.Current(), 10) }

// TestAVersionOfAnotherCollectionNeedsNoBookmark: readers who name it, and readers who name none,
// are answered within milliseconds by one list of the upstream, whose watches are silent. A watch
// from the version of the answer has no gap.
func TestAVersionOfAnotherCollectionNeedsNoBookmark(t *testing.T) {
	yes := true
	for name, options := range map[string]metav1.ListOptions{
		"no version":     {},
		"not older than": {ResourceVersion: "another", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan},
		"exactly":        {ResourceVersion: "another", ResourceVersionMatch: metav1.ResourceVersionMatchExact},
		"a page of":      {ResourceVersion: "another", Limit: 1},
		"a page after":   {Continue: "another"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOrigins(t)
				o.put("a")
				o.hear(1)
				for round := range 3 {
					o.elsewhere()
					if options.ResourceVersion != "" {
						options.ResourceVersion = o.version()
					}
					if options.Continue != "" {
						options.Continue = pagetoken.From("ns/", int64(o.revision.Current())).String()
					}
					began := time.Now()
					var readers sync.WaitGroup
					for range 100 {
						readers.Go(func() {
							list := o.copy.List(t.Context(), options)
							for _, err := range list.Items {
								require.NoError(t, err)
							}
							require.Equal(t, o.version(), list.Meta().ResourceVersion)
						})
					}
					readers.Wait()
					require.Less(t, time.Since(began), 50*time.Millisecond)
					require.Equal(t, int64(round+1), o.pods.lists.Load(), "lists")
					require.LessOrEqual(t, o.pods.newest.Load(), int64(2*(round+1)), "questions for the newest version")
				}
				require.Equal(t, "2", o.copy.ResourceVersion(), "no event has come since")

				starts := metav1.ListOptions{
					SendInitialEvents: &yes, AllowWatchBookmarks: true,
					ResourceVersion: options.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
				}
				seen := start(t, o.copy.Watch(t.Context(), starts))
				seen.Require("ADDED a@2", "BOOKMARK "+o.version()+" end")
				from := start(t, o.copy.Watch(t.Context(), metav1.ListOptions{ResourceVersion: o.version()}))
				o.put("b")
				o.hear(1)
				seen.Require("ADDED b@" + o.version())
				from.Require("ADDED b@" + o.version())
			})
		})
	}
}

// TestAWatchFromAComparedVersionGetsBookmarks: a watch from another collection's version gets a
// bookmark of that version after each interval, though the copy has heard of nothing. A watch from
// a version of the future stays silent.
func TestAWatchFromAComparedVersionGetsBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		o := newOrigins(t)
		o.put("a")
		o.hear(1)
		o.elsewhere()
		version := o.version()
		require.NoError(t, o.copy.WaitFresh(t.Context()))
		from := start(t, o.copy.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}))
		future := start(t, o.copy.Watch(ctx, metav1.ListOptions{ResourceVersion: "1000", AllowWatchBookmarks: true}))
		o.put("b") // a later state that is known does not move the bookmark on
		require.Error(t, o.copy.WaitFor(t.Context(), o.version()))
		time.Sleep(time.Minute)
		from.Require("BOOKMARK " + version)
		time.Sleep(time.Minute)
		from.Require("BOOKMARK " + version)
		o.hear(1)
		from.Require("ADDED b@" + o.version())
		time.Sleep(time.Minute)
		from.Require("BOOKMARK " + o.version())
		future.RequireEnd()
	})
}

// TestAVersionOfTheFutureIsNotListedFor: a reader of a version that nobody has written has the
// upstream asked for its newest version alone, ten times a second.
func TestAVersionOfTheFutureIsNotListedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigins(t)
		require.Error(t, o.copy.WaitFor(t.Context(), "1000"))
		require.Error(t, o.exactly("1000"))
		require.Zero(t, o.pods.lists.Load())
		require.LessOrEqual(t, o.pods.newest.Load(), int64(70))
	})
}

// exactly lists the copy at a version.
func (o *origins) exactly(version string) error {
	for _, err := range o.copy.List(o.t.Context(), metav1.ListOptions{
		ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	}).Items {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestExactVersionsWaitForNoOther: a version that is still to be written, or that the upstream has
// forgotten, holds up no reader of another version. A forgotten one is listed once.
func TestExactVersionsWaitForNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigins(t)
		forgotten := "2"
		o.elsewhere()
		o.elsewhere()
		o.pods.Compact()
		var refused sync.WaitGroup
		for _, version := range []string{forgotten, "1000"} {
			refused.Go(func() { require.Error(t, o.exactly(version)) })
		}
		time.Sleep(time.Second)
		require.Equal(t, int64(1), o.pods.lists.Load(), "lists")
		for range 3 {
			o.elsewhere()
			began := time.Now()
			require.NoError(t, o.exactly(o.version()))
			require.NoError(t, o.copy.WaitFor(t.Context(), o.version()))
			require.Less(t, time.Since(began), 200*time.Millisecond)
		}
		require.Equal(t, int64(4), o.pods.lists.Load(), "lists")
		refused.Wait()
	})
}

// TestListsForProofAreFew: lists of the upstream that take 100 ms take a tenth of the time, however
// many readers come.
func TestListsForProofAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrigins(t)
		o.pods.takes = 100 * time.Millisecond
		began := time.Now()
		for time.Since(began) < 10*time.Second {
			o.elsewhere()
			require.NoError(t, o.copy.WaitFresh(t.Context()))
		}
		require.InDelta(t, 10, o.pods.lists.Load(), 2)
	})
}

// TestComparedStatesAreTheTruth makes random writes, of which the copy hears late. Each list of the
// copy is the truth at the version that it names, which may be an exact one, so is its second page,
// and a watch from there is told every later change and no other. Some lists of the upstream break
// off. Pods that are created and deleted between two lists make the copy equal to the truth before
// it has heard of them.
func TestComparedStatesAreTheTruth(t *testing.T) {
	answered, compared := 0, int64(0)
	for range 20 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			o := newOrigins(t)
			o.pods.breaks = 5
			truth := map[string]map[string]string{"1": {}}
			changes := []string{"1"} // the versions of all changes of pods
			present := map[string]string{}
			var readers []*comparer
			for range 60 {
				for range random.IntN(4) {
					name := fmt.Sprint("pod-", random.IntN(3))
					switch _, there := present[name]; {
					case random.IntN(3) == 0:
						o.elsewhere()
					case there && random.IntN(2) == 0:
						o.remove(name)
						delete(present, name)
						changes = append(changes, o.version())
					default:
						o.put(name)
						present[name] = o.version()
						changes = append(changes, o.version())
					}
					state := map[string]string{}
					for name, version := range present {
						state[name] = version
					}
					truth[o.version()] = state
				}
				if random.IntN(2) == 0 {
					o.hear(random.IntN(len(o.behind) + 1))
				}
				r := &comparer{seed: seed, copy: o.copy, options: metav1.ListOptions{Limit: int64(random.IntN(2))}}
				switch random.IntN(4) {
				case 0:
					r.options = metav1.ListOptions{ResourceVersion: o.version(), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
				case 1:
					back := random.Uint64N(min(4, o.revision.Current()))
					r.options.ResourceVersion = strconv.FormatUint(o.revision.Current()-back, 10)
					r.options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
				}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					r.list(t, ctx)
				}()
				time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
				o.copy.SendBookmarks()
				select {
				case <-done:
					if r.options.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
						require.Equal(t, r.options.ResourceVersion, r.version, "seed %d", seed)
					}
					require.Equal(t, truth[r.version], r.state, "seed %d: the state at %s", seed, r.version)
					r.follow(t)
					readers = append(readers, r)
				default: // the copy has still to hear of a write
				}
				stop()
				<-done
			}
			o.hear(len(o.behind))
			synctest.Wait()
			for _, r := range readers {
				var want []string
				for _, version := range changes {
					if number(t, version) > number(t, r.version) {
						want = append(want, version)
					}
				}
				require.Equal(t, want, r.told, "seed %d: after %s", seed, r.version)
				require.Equal(t, present, r.state, "seed %d: after %s", seed, r.version)
			}
			answered += len(readers)
			compared += o.pods.lists.Load()
		})
	}
	require.Greater(t, answered, 20, "lists that were answered before the next write, over all seeds")
	require.Greater(t, compared, int64(20), "lists of the upstream, over all seeds")
}

func number(t *testing.T, version string) int {
	n, err := strconv.Atoi(version)
	require.NoError(t, err)
	return n
}

// comparer is a client that lists the copy, in pages or not, and watches from there.
type comparer struct {
	seed    uint64
	copy    *podCache
	options metav1.ListOptions
	version string
	state   map[string]string
	told    []string
}

// list reads all pages. The end of ctx leaves the comparer without a version.
func (r *comparer) list(t *testing.T, ctx context.Context) {
	state := map[string]string{}
	for options := r.options; ; {
		page := r.copy.List(ctx, options)
		for obj, err := range page.Items {
			if ctx.Err() != nil {
				return
			}
			require.NoError(t, err, "seed %d", r.seed)
			state[obj.Name] = obj.ResourceVersion
		}
		meta := page.Meta()
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
		if options.Continue = meta.Continue; options.Continue == "" {
			r.version, r.state = meta.ResourceVersion, state
			return
		}
	}
}

func (r *comparer) follow(t *testing.T) {
	events := r.copy.Watch(t.Context(), metav1.ListOptions{ResourceVersion: r.version, AllowWatchBookmarks: true})
	go func() {
		marked := number(t, r.version)
		for e, err := range events {
			require.NoError(t, err)
			if e.Type == watch.Bookmark {
				marked = max(marked, number(t, e.ResourceVersion))
				continue
			}
			require.Greater(t, number(t, e.ResourceVersion), marked, "seed %d", r.seed)
			r.told = append(r.told, e.ResourceVersion)
			delete(r.state, e.Object.Name)
			if e.Type != watch.Deleted {
				r.state[e.Object.Name] = e.Object.ResourceVersion
			}
		}
	}()
}
