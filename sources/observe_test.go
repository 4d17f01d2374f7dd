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
	a, b := newScripted("a"), newScripted("b")
	s := sources.New("node-1", sources.Custom(a), sources.Custom(b))
	told := make(chan string, 100)
	s.Observe(sources.Observer{Changed: func(pods iter.Seq2[string, sources.MergedPod]) {
		line := ""
		for key, pod := range pods {
			if pod.Pod == nil {
				line += key + " is gone"
				continue
			}
			line += key + "=" + pod.Pod.Spec.Containers[0].Image
			for _, source := range pod.Sources {
				line += " " + source
			}
		}
		told <- line
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	expect := func(line string) {
		t.Helper()
		<-s.Updates()
		require.NotEmpty(t, told, "the reader is told first")
		require.Equal(t, line, <-told)
	}
	a.set(t, podOf("web", "v1"))
	expect("default/web=v1 a")
	b.set(t, podOf("web", "v2"))
	expect("default/web=v1 a b")
	require.NoError(t, s.Remove("a"))
	expect("default/web=v2 b")
	b.set(t)
	expect("default/web is gone")
	cancel()
	require.NoError(t, <-ended)
	require.Empty(t, told)
	require.Panics(t, func() { s.Observe(sources.Observer{}) })
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
