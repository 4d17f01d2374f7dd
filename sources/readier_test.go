package sources_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
)

// TestSourcesReady: a required source must have been read, be fresh, and not wait for its reader.
func TestSourcesReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, extra := newScripted("api"), newScripted("extra")
		s := sources.New("node-1", sources.Custom(api), sources.Custom(extra).Optional(0))
		require.EqualError(t, s.Ready(time.Hour), "sources: Run has not been called")
		go s.Run(t.Context())
		synctest.Wait()
		probe := func() (int, string) {
			answer := httptest.NewRecorder()
			reflector.ReadyHandler(time.Minute, s).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			return answer.Code, answer.Body.String()
		}
		fresh := func(problems ...error) {
			api.tell(sources.Report{LastContact: time.Now(), StaleAfter: time.Second, Problems: problems})
		}
		fresh(errors.New("the server is away"))
		code, text := probe()
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.Equal(t, "copy 1: api: not read yet: the server is away\n", text)
		api.set(t, podOf("web", "v1"))
		<-s.Updates()
		synctest.Wait()
		code, _ = probe()
		require.Equal(t, http.StatusOK, code, "a problem that hides nothing does not matter, nor does an optional source")
		require.EqualError(t, s.Status()[1].Ready(time.Minute), "extra: not read yet")
		time.Sleep(time.Minute)
		require.NoError(t, s.Ready(time.Minute))
		time.Sleep(time.Millisecond)
		require.EqualError(t, s.Ready(time.Minute), "api: nothing heard for 1m0.001s, allowed are 1m0s: the server is away")
		api.set(t, podOf("web", "v2"))
		synctest.Wait()
		fresh()
		time.Sleep(time.Minute + time.Second)
		fresh()
		require.EqualError(t, s.Ready(time.Minute), "api: the reader of Updates is late by 1m1s, allowed are 1m0s")
		<-s.Updates()
		synctest.Wait()
		require.NoError(t, s.Ready(time.Minute))
		api.ends <- errors.New("gone")
		synctest.Wait()
		require.EqualError(t, s.Ready(time.Minute), "api: it has ended: the api source has ended: gone")
	})
}

// TestACheckpointIsNotReady until the API server has answered.
func TestACheckpointIsNotReady(t *testing.T) {
	restored := sources.Status{Source: "api", Phase: reflector.Watching, Restored: true}
	require.EqualError(t, restored.Ready(time.Hour), "api: its pods are of a checkpoint")
	cached := sources.Status{Source: "api", Seen: true, Reflector: &reflector.Status{Phase: reflector.Watching, Synced: true}}
	require.ErrorContains(t, cached.Ready(time.Hour), "the state is of unknown age")
}
