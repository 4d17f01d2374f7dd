package sources_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/sources"
)

// TestObserversAreToldBeforeTheReader: an observer has each pod that the reader is told, as Merged
// has it, and the end of a removed source.
func TestObserversAreToldBeforeTheReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newScripted("a"), newScripted("b")
		s := sources.New("node-1", sources.Custom(a), sources.Custom(b))
		told, release := make(chan string), make(chan struct{})
		s.Observe(sources.Observer{Changed: func(pods iter.Seq2[string, sources.MergedPod]) {
			line := ""
			for key, pod := range pods {
				line += key
				if pod.Pod != nil {
					line += "=" + pod.Pod.Spec.Containers[0].Image
				}
				for _, source := range pod.Sources {
					line += " " + source
				}
			}
			told <- line
			<-release
		}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		for _, step := range []struct {
			do   func()
			want string
		}{
			{func() { a.set(t, podOf("web", "v1")) }, "default/web=v1 a"},
			{func() { b.set(t, podOf("web", "v2")) }, "default/web=v1 a b"},
			{func() { go s.Remove("a") }, "default/web=v2 b"},
			{func() { b.set(t) }, "default/web"},
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
			<-s.Updates()
		}
		require.Panics(t, func() { s.Observe(sources.Observer{}) })
		cancel()
		require.NoError(t, <-ended)
	})
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
