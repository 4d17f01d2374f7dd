package sources_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources"
)

// TestObserversAreToldBeforeTheReader: an observer has each pod that the reader is told, as Merged
// has it, and the end of a removed source.
func TestObserversAreToldBeforeTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newScripted("a"), newScripted("b")
		s := sources.New("node-1", sources.Custom(a), sources.Custom(b))
		told, release := make(chan string), make(chan struct{})
		s.Observe(sources.Observer{Changed: func(changes iter.Seq[sources.PodChange]) {
			var lines []string
			for c := range changes {
				lines = append(lines, c.Key+": "+shown(c.Old)+" -> "+shown(c.New))
			}
			told <- strings.Join(lines, ", ")
			<-release
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		for _, step := range []struct {
			do   func()
			want string
		}{
			{func() { a.set(t, podOf("web", "v1")) }, "default/web: none -> v1 of a"},
			{func() { b.set(t, podOf("web", "v2")) }, "default/web: v1 of a -> v1 of a b"},
			{func() { go s.Remove("a") }, "default/web: v1 of a b -> v2 of b"},
			{func() { b.set(t, podOf("web", "v3", uid("another"))) }, "default/web: v2 of b -> none, default/web: none -> v3 of b"},
			{func() { b.set(t) }, "default/web: v3 of b -> none"},
		} {
			step.do()
			require.Equal(t, step.want, <-told)
			synctest.Wait()
			select {
			case <-s.Updates():
				require.FailNow(t, "the reader is told first", step.want)
			default:
			}
			release <- struct{}{}
			for range strings.Count(step.want, "->") { // the update of each change
				<-s.Updates()
			}
		}
		require.Panics(t, func() { s.Observe(sources.Observer{}) })
		cancel()
		require.NoError(t, <-ended)
	})
}

// shown is a pod by its image and its sources.
func shown(p sources.MergedPod) string {
	if p.Pod == nil {
		return "none"
	}
	return p.Pod.Spec.Containers[0].Image + " of " + strings.Join(p.Sources, " ")
}

// TestPodsMadeAnewInTwoSources: an observer hears of the beginning and the end of each pod once,
// though two sources set states at a time.
func TestPodsMadeAnewInTwoSources(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	a, b := newScripted("a"), newScripted("b")
	s := sources.New("node-1", sources.Custom(a), sources.Custom(b))
	present, ended := map[types.UID]bool{}, 0
	s.Observe(sources.Observer{Changed: func(changes iter.Seq[sources.PodChange]) {
		for c := range changes {
			switch {
			case c.Old.Pod == nil:
				assert.False(t, present[c.New.Pod.UID], "%s is new twice", c.New.Pod.UID)
				present[c.New.Pod.UID] = true
			case c.New.Pod == nil:
				assert.True(t, present[c.Old.Pod.UID], "%s ends, and has not begun", c.Old.Pod.UID)
				delete(present, c.Old.Pod.UID)
				ended++
			default:
				assert.Equal(t, c.Old.Pod.UID, c.New.Pod.UID)
			}
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	run := make(chan error, 1)
	go func() { run <- s.Run(ctx) }()
	go func() {
		for range s.Updates() {
		}
	}()
	var setting sync.WaitGroup
	for i, source := range []*scripted{a, b} {
		setting.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := range 2000 {
				var pods []*corev1.Pod
				if random.IntN(4) > 0 {
					pods = append(pods, podOf("web", "v1", uid(strconv.Itoa(n/4))))
				}
				source.set(t, pods...)
			}
		})
	}
	setting.Wait()
	cancel()
	require.NoError(t, <-run)
	require.Greater(t, ended, 500)
	require.LessOrEqual(t, len(present), 1)
}

// TestObserversWorkDuringRun: from before the first source to the end of Run, and each has an entry
// in Status.
func TestObserversWorkDuringRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		s := sources.New("node-1", sources.Custom(newScripted("a")))
		s.Observe(sources.Observer{
			Start: func(ctx context.Context) (func(), error) {
				order = append(order, "start")
				return func() {
					<-ctx.Done()
					order = append(order, "end")
				}, nil
			},
			Status: func() sources.Status { return sources.Status{Source: "observer", Optional: true} },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		require.True(t, slices.ContainsFunc(s.Status(), func(s sources.Status) bool { return s.Source == "observer" }))
		cancel()
		require.NoError(t, <-ended)
		require.Equal(t, []string{"start", "end"}, order)

		refused := sources.New("node-1", sources.Custom(newScripted("a")))
		refused.Observe(sources.Observer{Start: func(context.Context) (func(), error) { return nil, errors.New("it is broken") }})
		require.EqualError(t, refused.Run(t.Context()), "sources: it is broken")
	})
}
