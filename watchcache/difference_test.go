package watchcache_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
)

// sluggish is a cache whose watches are read slowly, and cut off now and then.
type sluggish struct {
	*podCache
	random      *rand.Rand
	cutInside   int // how many watches were cut within a difference
	differences int // how many came to their end
}

var errCut = errors.New("connection reset by peer")

func (s *sluggish) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
	return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
		inside := false
		for e, err := range s.podCache.Watch(ctx, options) {
			pause := time.Duration(s.random.IntN(30)) * time.Millisecond
			time.Sleep(pause) // of the simulated clock
			if s.random.IntN(40) == 0 {
				if inside {
					s.cutInside++
				}
				yield(listwatch.Event[*corev1.Pod]{}, errCut)
				return
			}
			if inside = e.DifferenceBegins || inside && !e.DifferenceEnds; e.DifferenceEnds {
				s.differences++
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestDifferencesMakeTheTruth has a reflector follow a cache too slowly, over watches that are cut
// off anywhere, also within a difference, into a cache of its own. Clients move between that and
// another copy. In the end the second cache and the copies of all clients are the truth.
func TestDifferencesMakeTheTruth(t *testing.T) {
	differences, inside := 0, 0
	for range 10 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 9))
			h := newTruth(t, random)
			small, second := newCache(t, watchcache.WithWindow(6)), newCache(t, watchcache.WithFreshWait(time.Hour))
			for _, c := range []*podCache{small, second} {
				require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
			}
			first := h.caches[0]
			h.caches, h.behind = []*podCache{first, small}, [][]func(*podCache) error{nil, nil}
			lw := &sluggish{podCache: small, random: rand.New(rand.NewPCG(seed, 10))}
			ctx, stop := context.WithCancel(t.Context())
			r := reflector.New(lw, second, reflector.WithLogger(logr.Discard()), reflector.WithDifferences())
			done := make(chan error, 1)
			go func() { done <- r.Run(ctx) }()
			var movers []*mover
			for _, kind := range kinds {
				movers = append(movers, &mover{options: kind.options, keeps: kind.keeps, version: "1", copy: map[string]string{}})
			}
			for range 60 {
				for range random.IntN(12) {
					h.write()
				}
				h.follow(0)
				h.follow(1)
				time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
				for _, m := range movers {
					if random.IntN(4) == 0 {
						m.visit(t, []*podCache{first, second}[random.IntN(2)], random.IntN(4))
					}
				}
			}
			require.NoError(t, second.WaitFor(t.Context(), strconv.Itoa(h.version)), "seed %d", seed)
			held := map[string]string{}
			for key, p := range second.Snapshot().All() {
				held[key] = p.ResourceVersion
			}
			require.Equal(t, h.seenBy(func(*corev1.Pod) bool { return true }), held, "seed %d", seed)
			for _, m := range movers {
				m.visit(t, second, 1_000_000)
				require.Equal(t, h.seenBy(m.keeps), m.copy, "seed %d: %s", seed, m.options.String())
			}
			stop()
			require.NoError(t, <-done)
			differences += lw.differences
			inside += lw.cutInside
		})
	}
	require.NotZero(t, differences)
	require.NotZero(t, inside, "no difference was cut off in the middle")
}

// TestADifferenceIsToldToWhoPermitsIt: a watcher that has fallen out of the window gets what has
// become of the objects between two bookmarks, and goes on from there. All others get a 410.
func TestADifferenceIsToldToWhoPermitsIt(t *testing.T) {
	for name, selector := range map[string]string{"everything": "", "a node": "spec.nodeName=n1"} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, watchcache.WithWindow(4))
			on := func(name string, version int) *corev1.Pod {
				p := stored(name, version)
				onNode("n1")(p)
				return p
			}
			require.NoError(t, c.Replace(store.Items(on("a", 1), on("b", 2), on("c", 3)), store.At("3")))
			begin := func(permits bool) *watchcache.Watcher[*corev1.Pod] {
				r, err := watchcache.RequestOf(metav1.ListOptions{ResourceVersion: "3", FieldSelector: selector})
				require.NoError(t, err)
				r.Differences = permits
				w, err := c.Watcher(r)
				require.NoError(t, err)
				t.Cleanup(w.Close)
				return w
			}
			permits, refuses := begin(true), begin(false)
			require.NoError(t, c.Update(on("a", 4)))
			read := func(w *watchcache.Watcher[*corev1.Pod]) (lines []string) {
				events, err := w.Next(t.Context())
				if apierrors.IsResourceExpired(err) {
					return []string{"410"}
				}
				require.NoError(t, err)
				for _, d := range events {
					line := seen(d.Event)
					switch {
					case d.DifferenceBegins:
						line += " begins"
					case d.DifferenceEnds:
						line += " ends"
					}
					lines = append(lines, line)
				}
				return lines
			}
			for _, w := range []*watchcache.Watcher[*corev1.Pod]{permits, refuses} {
				require.Equal(t, []string{"MODIFIED a@4"}, read(w))
			}
			for version := 5; version < 15; version++ {
				require.NoError(t, c.Update(on("b", version)))
			}
			require.NoError(t, c.Delete(on("c", 15)))
			require.NoError(t, c.Add(on("d", 16)))
			require.NoError(t, c.Delete(on("d", 17)))
			require.NoError(t, c.Add(on("e", 18)))
			require.Equal(t, []string{
				"BOOKMARK 4 begins", "ADDED a@4", "ADDED b@14", "DELETED c@18", "DELETED d@18", "ADDED e@18", "BOOKMARK 18 ends",
			}, read(permits))
			require.Equal(t, []string{"410"}, read(refuses))
			require.NoError(t, c.Update(on("e", 19)))
			require.Equal(t, []string{"MODIFIED e@19"}, read(permits))
		})
	}
}

// TestADifferenceThatIsNotKnown: without room for the names of what has changed, and after the
// history was forgotten, a watcher that permits a difference gets a 410.
func TestADifferenceThatIsNotKnown(t *testing.T) {
	for name, forget := range map[string]func(*podCache){
		"no room": func(c *podCache) {
			for version := 2; version < 500; version++ {
				require.NoError(t, c.Add(stored(fmt.Sprint("pod-", version), version)))
			}
		},
		"no history": func(c *podCache) {
			for version := 2; version < 20; version++ {
				require.NoError(t, c.Update(stored("a", version)))
			}
			c.Expire(20)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCache(t, watchcache.WithWindow(4), watchcache.WithWindowBytes(16<<10))
				require.NoError(t, c.Replace(store.Items(stored("a", 1)), store.At("1")))
				r := watchcache.Request{Differences: true}
				r.ResourceVersion = "1"
				w, err := c.Watcher(r)
				require.NoError(t, err)
				defer w.Close()
				begin := make(chan struct{})
				ended := make(chan error, 1)
				go func() {
					events, err := w.Next(t.Context())
					require.Len(t, events, 1)
					require.NoError(t, err)
					<-begin
					_, err = w.Next(t.Context())
					ended <- err
				}()
				synctest.Wait()
				require.NoError(t, c.Update(stored("a", 2)))
				synctest.Wait()
				forget(c)
				close(begin)
				require.True(t, apierrors.IsResourceExpired(<-ended))
			})
		})
	}
}
