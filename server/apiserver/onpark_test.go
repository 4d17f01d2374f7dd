package apiserver_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
)

// TestAHandlerAroundEndsWatches through the context of the request, or through OnPark: a client
// gets a proper end.
func TestAHandlerAroundEndsWatches(t *testing.T) {
	parkedOrNot(t, func(t *testing.T, newRig func(testing.TB, ...watchcache.Option) *rig) {
		r := newRig(t)
		r.create(t, pod("a"))
		var parked, left atomic.Int32
		ends := make(chan context.CancelFunc, 1)
		count := func(context.CancelFunc) func() {
			parked.Add(1)
			return func() { left.Add(1) }
		}
		r.handler = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			ctx, cancel := context.WithCancel(request.Context())
			defer cancel()
			ends <- cancel
			ctx = apiserver.OnPark(ctx, count)
			ctx = apiserver.OnPark(ctx, func(hangUp context.CancelFunc) func() {
				<-ends
				ends <- hangUp
				return count(hangUp)
			})
			r.Server.ServeHTTP(w, request.WithContext(ctx))
		})
		answer, err := r.web.Get(r.url + "/api/v1/pods?watch=1&allowWatchBookmarks=1")
		require.NoError(t, err)
		defer answer.Body.Close()
		body := bufio.NewReader(answer.Body)
		for _, event := range []string{"ADDED", "BOOKMARK"} {
			line, err := body.ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, event)
		}
		require.EqualValues(t, 2*r.Parked(), parked.Load())
		require.Zero(t, left.Load())

		end := <-ends
		end()
		rest, err := io.ReadAll(body)
		require.NoError(t, err, "the answer is whole")
		require.Empty(t, rest, "whoever has lost a right is told nothing more")
		eventually(t, func() bool { return left.Load() == parked.Load() && r.Parked() == 0 }, "each parked watch has left")
		end()
	})
}
