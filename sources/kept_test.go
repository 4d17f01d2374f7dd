package sources_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
)

// notRight is the class that the metrics have for a source; empty if they say nothing.
func notRight(s *sources.Sources, source string) (class string) {
	for sample := range s.Samples("node-1") {
		if sample.Metric.Name == "tributary_sources_not_right" && sample.Labels[1] == source {
			class += sample.Labels[2]
		}
	}
	return class
}

// TestSourcesThatNothingKeeps: before Run, after its end and after an error of it no source is
// ready, nothing is safe to prune, and Status, verdict and metrics say why.
func TestSourcesThatNothingKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScripted("api")
		s := sources.New("node-1", sources.Custom(api), sources.Custom(newScripted("extra")).Optional(0))
		require.EqualError(t, s.Ready(0), "sources: Run has not been called")
		require.EqualError(t, s.Status()[0].Ready(0), "api: Run has not been called")
		require.Equal(t, reflector.Idle, s.Status()[0].Phase)
		require.Equal(t, "not_run", notRight(s, "api"))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		api.set(t, podOf("web", "v1"))
		<-s.Updates()
		synctest.Wait()
		require.NoError(t, s.Ready(time.Minute))
		require.True(t, s.SafeToPrune("api"))
		require.Empty(t, notRight(s, "api"))
		require.Equal(t, reflector.Watching, s.Status()[0].Phase)
		cancel()
		require.NoError(t, <-ended)
		require.EqualError(t, s.Ready(0), "sources: Run has ended")
		require.EqualError(t, s.Status()[0].Ready(0), "api: it has ended")
		require.Equal(t, reflector.Ended, s.Status()[0].Verdict(0).Class)
		require.Equal(t, "ended", notRight(s, "api"))
		require.False(t, s.SafeToPrune("api"))
	})
}

// TestSourcesThatCannotRun: an input that adds no source, and any other error at once, shows for as
// long as the program keeps the sources, with the error that it may have dropped.
func TestSourcesThatCannotRun(t *testing.T) {
	for name, c := range map[string]struct {
		s    *sources.Sources
		want string
	}{
		"no client":  {sources.New("node-1", sources.APIServer(nil)), "APIServer was given no client"},
		"bad option": {sources.New("node-1", sources.APIServer(nil).Named("api"), sources.Custom(newScripted("extra"))), "APIServer was given no client"},
		"no name":    {sources.New("", sources.Custom(newScripted("api"))), "the node has no name"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, "not_run", notRight(c.s, "api"))
			require.ErrorContains(t, c.s.Run(t.Context()), c.want)
			require.ErrorContains(t, c.s.Ready(time.Hour), c.want)
			for _, status := range c.s.Status() {
				require.Equal(t, reflector.Stopped, status.Phase)
				require.ErrorContains(t, status.Ready(time.Hour), "it has ended: sources: ")
				require.ErrorContains(t, errors.Join(status.Problems...), c.want)
			}
			require.Equal(t, "ended", notRight(c.s, "api"))
			require.False(t, c.s.SafeToPrune("api"))
		})
	}
	none := sources.New("node-1")
	require.Error(t, none.Run(t.Context()))
	require.ErrorContains(t, none.Ready(time.Hour), "there is no source")
}

// TestASourceThatLeaves: a source whose Run returns while the others go on keeps nothing any more,
// even without an error.
func TestASourceThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newScripted("api")
		s := sources.New("node-1", sources.Custom(api), sources.Custom(newScripted("extra")).Optional(0))
		go s.Run(t.Context())
		api.set(t, podOf("web", "v1"))
		<-s.Updates()
		synctest.Wait()
		require.NoError(t, s.Ready(time.Minute))
		api.ends <- nil
		synctest.Wait()
		require.EqualError(t, s.Ready(time.Minute), "api: it has ended")
		require.False(t, s.SafeToPrune("api"))
	})
}
