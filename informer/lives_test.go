package informer_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// lives are the beginnings and ends of objects by key, in order. An end has its version.
type lives map[string]string

func (l lives) handle(e podEvent) {
	switch e.Type {
	case informer.Added:
		l[e.Key] += " +" + string(e.New.UID)
	case informer.Deleted:
		l[e.Key] += " -" + string(e.Old.UID) + "@" + e.Old.ResourceVersion
	}
}

// lives returns what a handler must be told that was there from the beginning.
func (s *server) lives() lives {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := lives{}
	for _, w := range s.history {
		key := store.KeyOf(w.event.Object)
		switch w.event.Type {
		case watch.Added:
			all[key] += " +" + string(w.event.Object.UID)
		case watch.Deleted:
			all[key] += " -" + string(w.event.Object.UID) + "@" + w.event.Object.ResourceVersion
		}
	}
	return all
}

// TestEachLifeIsTold: a handler that falls behind a watch is told of each object that lived, once
// as Added and once as Deleted, in the order of the key, and with the version of the deletion.
// Updates in between are merged.
func TestEachLifeIsTold(t *testing.T) {
	for range 12 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 0))
				s := newServer()
				i := informer.New[*corev1.Pod](s, informer.WithRing(32+random.IntN(32)))
				told := make([]lives, 4)
				for n := range told {
					told[n] = lives{}
					own := rand.New(rand.NewPCG(seed, uint64(n)))
					add(t, i, func(e podEvent) {
						told[n].handle(e)
						time.Sleep(time.Duration(own.IntN(1+n*n*50)) * time.Millisecond)
					})
				}
				stop := start(t, i)
				synctest.Wait() // each begins with nothing
				m := &model{t: t, random: random, server: s}
				for range 300 {
					if random.IntN(50) == 0 {
						s.disconnect(false) // the watch is resumed
					}
					for range random.IntN(8) {
						m.change(fmt.Sprint("p", random.IntN(8)))
					}
					time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				differences := uint64(0)
				for n, h := range i.Status().Handlers {
					assert.Zero(t, h.Incomplete)
					assert.Equal(t, s.lives(), told[n], h.Name)
					differences += h.Differences
				}
				require.Positive(t, differences, "nobody falls behind")
				require.NoError(t, stop())
			})
		})
	}
}

// TestTooManyLives: a handler that is blocked while more objects die than are kept for it is told
// of the last ones. Its Status counts that, and the log says it once.
func TestTooManyLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged []string
		log := funcr.New(func(_, line string) {
			if strings.Contains(line, "handler") {
				logged = append(logged, line)
			}
		}, funcr.Options{})
		s := newServer("a")
		i := running(t, s, informer.WithRing(2), informer.WithReflector(reflector.WithLogger(log)))
		told := lives{}
		add(t, i, func(e podEvent) { told.handle(e); time.Sleep(time.Second) }) // simulated time
		for range 2 {
			time.Sleep(time.Minute)
			s.put("a")
			synctest.Wait()
			clear(told)
			for range 50 {
				s.put("b")
				s.remove("b")
				s.put("c")
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			require.Equal(t, 33, strings.Count(told["ns/b"], " -"), "16 rings of 2, and one that is in the ring")
			require.Equal(t, 33, strings.Count(told["ns/b"], " +"))
			require.True(t, strings.HasSuffix(s.lives()["ns/b"], told["ns/b"]), "the newest")
		}
		require.EqualValues(t, 2, i.Status().Handlers[0].Incomplete)
		require.Len(t, logged, 1)
		require.Contains(t, logged[0], "raise WithRing")
	})
}

// TestALifeThatAListEnds: an object is created while a handler lags, and a list that is larger than
// the ring shows that it is gone.
func TestALifeThatAListEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		i := running(t, s, informer.WithRing(4))
		goOn := make(chan struct{})
		told := lives{}
		add(t, i, func(e podEvent) { told.handle(e); <-goOn })
		synctest.Wait()
		s.put("short")
		s.put("short")
		synctest.Wait()
		s.silence()
		s.remove("short")
		for n := range 10 {
			s.put(fmt.Sprint("new-", n))
		}
		s.disconnect(true)
		time.Sleep(time.Minute) // simulated time: the reflector backs off
		close(goOn)
		synctest.Wait()
		require.Equal(t, " +uid-2 -uid-2@3", told["ns/short"], "with the last state that was seen")
		require.Len(t, told, 12)
	})
}
