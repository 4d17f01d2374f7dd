package refs_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/refs"
)

func someNames(n int) refs.Names {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("n%d", i))
	}
	return refs.In(ns, names...)
}

// slow has each request take as long before its answer, and returns the most that waited at once.
func (r *rig) slow(took time.Duration) *atomic.Int64 {
	var now, most atomic.Int64
	r.server.Intercept(func(w http.ResponseWriter, request *http.Request, server http.Handler) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		time.Sleep(took)
		now.Add(-1)
		server.ServeHTTP(w, request)
	}, listwatchtest.UntilLifted())
	return &most
}

// TestStartIsPaced: a thousand names begin without a storm.
func TestStartIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		most := r.slow(100 * time.Millisecond)
		began := time.Now()
		r.SetOwner("pod", someNames(1000))
		r.server.Server().AwaitWatches(1000)
		require.Equal(t, int64(16), most.Load())
		require.InDelta(t, 1000*0.1/16, time.Since(began).Seconds(), 0.5)
	})
}

// TestAGetGoesFirst: a name for which somebody waits does not wait for all others.
func TestAGetGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, refs.WithPace(1))
		r.slow(time.Second)
		r.put("last", "1")
		r.SetOwner("pod", someNames(500))
		r.SetOwner("pod2", refs.In(ns, "last"))
		began := time.Now()
		require.Equal(t, "1", r.value("last"))
		require.LessOrEqual(t, time.Since(began), 2*time.Second)
	})
}

// TestRetryAfterHoldsAllNamesBack: a server that asks to come later is asked by no name meanwhile.
func TestRetryAfterHoldsAllNamesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		throttled := r.server.Throttle(20*time.Second, listwatchtest.UntilLifted())
		r.SetOwner("pod", someNames(200))
		time.Sleep(20*time.Second - time.Millisecond)
		require.LessOrEqual(t, r.requests(), 16)
		throttled.Lift()
		r.server.Server().AwaitWatches(200)
	})
}

// TestAServerThatIsAwayIsAskedAtOnePace: two hundred names are no two hundred clients.
func TestAServerThatIsAwayIsAskedAtOnePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.SetOwner("pod", someNames(200))
		r.server.Server().AwaitWatches(200)
		away := r.server.Disconnect(listwatchtest.UntilLifted()) // each request, too
		before := r.requests()
		time.Sleep(10 * time.Minute)
		require.Less(t, r.requests()-before, 10*60*16)
		away.Lift()
		r.server.Server().AwaitWatches(200)
		require.Less(t, time.Now().Minute(), 12)
	})
}

// TestAWatchThatFailsAfterItsStateBacksOff: lists work, and watches do not. The state is read again
// at the pace of the backoff.
func TestAWatchThatFailsAfterItsStateBacksOff(t *testing.T) {
	for what, fail := range map[string]func(r *rig){
		"an error": func(r *rig) {
			r.server.Fail(listwatchtest.Watch, apierrors.NewInternalError(errors.New("by order")), listwatchtest.UntilLifted())
			r.server.Disconnect()
		},
		"cut at once": func(r *rig) { r.server.Disconnect(listwatchtest.UntilLifted(), listwatchtest.On(listwatchtest.Watch)) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.put("tls", "1")
				r.server.NoWatchList(listwatchtest.UntilLifted())
				r.SetOwner("pod", refs.In(ns, "tls"))
				require.Equal(t, "1", r.value("tls"))
				fail(r)
				time.Sleep(10 * time.Minute)
				require.Less(t, r.requests(), 150)
				r.put("tls", "2")
				time.Sleep(time.Minute)
				obj, _ := r.Get(t.Context(), ns, "tls")
				require.Equal(t, "2", string(obj.Data["value"]))
			})
		})
	}
}

// TestWatchesThatEndAtOnceBackOff: each watch brings its state, and ends.
func TestWatchesThatEndAtOnceBackOff(t *testing.T) {
	for _, share := range []int{0, 1} {
		t.Run(fmt.Sprintf("WithNamespaceWatch(%d)", share), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, refs.WithNamespaceWatch(share))
				short := r.server.Intercept(func(w http.ResponseWriter, request *http.Request, server http.Handler) {
					ctx, cancel := context.WithTimeout(request.Context(), 10*time.Millisecond)
					defer cancel()
					server.ServeHTTP(w, request.WithContext(ctx))
				}, listwatchtest.UntilLifted())
				r.put("tls", "1")
				r.SetOwner("pod", refs.In(ns, "tls"))
				require.Equal(t, "1", r.value("tls"))
				time.Sleep(10 * time.Minute)
				require.Less(t, r.requests(), 150)
				short.Lift()
				r.put("tls", "2")
				time.Sleep(time.Minute)
				require.Equal(t, "2", r.value("tls"))
			})
		})
	}
}
