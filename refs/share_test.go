package refs_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/refs"
)

// TestManyNamesShareOneWatch: a namespace with four names has one watch, and with one name again
// that name's. Each change is told, whichever watch is open.
func TestManyNamesShareOneWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, refs.WithNamespaceWatch(4), refs.WithIdle(0))
		var all []string
		go func() {
			for change := range r.Changes(t.Context()) {
				all = append(all, told(change))
			}
		}()
		step := func(watches int, want ...string) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			r.server.Server().AwaitWatches(watches)
			require.Equal(t, want, all)
			all = nil
		}
		r.put("a", "1")
		r.put("other", "1")
		r.SetOwner("pod", refs.In(ns, "a"))
		step(1, "a: nothing -> 1, of [pod]")
		r.SetOwner("pod2", refs.In(ns, "a", "b", "c", "d"))
		step(1)
		sent := r.requests()
		r.put("a", "2")
		synctest.Wait()
		require.Equal(t, "2", r.value("a"), "the watch of the namespace brings a change, and the object is read")
		step(1, "a: 1 -> 2, of [pod pod2]")
		r.put("b", "1")
		step(1, "b: nothing -> 1, of [pod2]")
		r.put("other", "2")
		r.remove("b")
		step(1, "b: 1 -> nothing, of [pod2]")
		require.Equal(t, sent+2, r.requests(), "one request for each change")
		require.NoError(t, r.WaitFor(t.Context(), r.put("c", "1")))
		require.Equal(t, "1", r.value("c"))
		step(1, "c: nothing -> 1, of [pod2]")

		r.SetOwner("pod2", nil)
		step(1, "c: 1 -> nothing, of []")
		r.put("a", "3")
		step(1, "a: 2 -> 3, of [pod]")
		requests := r.server.Server().Requests()
		require.Equal(t, "metadata.name=a", requests[len(requests)-1].Options.FieldSelector)
	})
}

// TestWithoutRightsToTheNamespace: names keep watches of their own.
func TestWithoutRightsToTheNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, refs.WithNamespaceWatch(10), refs.WithIdle(0))
		forbid := func() *listwatchtest.Fault {
			return r.server.Intercept(func(w http.ResponseWriter, request *http.Request, server http.Handler) {
				if request.URL.Query().Get("fieldSelector") != "" {
					server.ServeHTTP(w, request)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
			}, listwatchtest.UntilLifted())
		}
		rights := forbid()
		r.SetOwner("pod", someNames(20))
		time.Sleep(time.Minute)
		r.server.Server().AwaitWatches(20)
		rights.Lift()
		time.Sleep(time.Hour)
		r.server.Server().AwaitWatches(1)
		r.put("n7", "1")
		synctest.Wait()
		require.Equal(t, "1", r.value("n7"))

		forbid() // the rights are withdrawn
		r.server.Disconnect()
		time.Sleep(time.Minute)
		r.server.Server().AwaitWatches(20)
		_, err := r.Get(t.Context(), ns, "n8")
		require.True(t, apierrors.IsNotFound(err))
		require.Equal(t, "1", r.value("n7"))
	})
}

// TestAnEventDuringAReadIsNotLost: while an object is read, the watch of the namespace tells a
// newer state of it. The answer that comes then is older than that.
func TestAnEventDuringAReadIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, refs.WithNamespaceWatch(1), refs.WithIdle(0))
		r.put("a", "1")
		r.SetOwner("pod", refs.In(ns, "a"))
		time.Sleep(time.Minute)
		r.server.Intercept(func(w http.ResponseWriter, request *http.Request, server http.Handler) {
			server.ServeHTTP(&late{ResponseWriter: w}, request)
		})
		r.put("a", "2") // the read begins, and its answer is on its way for a second
		time.Sleep(500 * time.Millisecond)
		r.put("a", "3")
		time.Sleep(time.Minute)
		require.Equal(t, "3", r.value("a"))
		r.server.Server().AwaitWatches(1)
	})
}

// late sends an answer a second after it was made.
type late struct {
	http.ResponseWriter
	sent bool
}

func (l *late) Write(p []byte) (int, error) {
	if !l.sent {
		l.sent = true
		time.Sleep(time.Second)
	}
	return l.ResponseWriter.Write(p)
}

func (l *late) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// TestAServerThatStarts answers 403 until it has read its roles. The namespace keeps its one watch.
func TestAServerThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, refs.WithNamespaceWatch(10), refs.WithIdle(0))
		r.put("n7", "1")
		r.SetOwner("pod", someNames(20))
		time.Sleep(time.Minute)
		r.server.Server().AwaitWatches(1)
		sent := r.requests()
		away := r.server.Intercept(func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }, listwatchtest.UntilLifted())
		r.server.Disconnect()
		time.Sleep(10 * time.Second)
		starts := r.server.Fail(listwatchtest.Watch, forbidden, listwatchtest.UntilLifted())
		away.Lift()
		time.Sleep(3 * time.Second)
		obj, err := r.Get(within(t, time.Second), ns, "n7")
		require.ErrorContains(t, err, "stale since", "%v", obj)
		starts.Lift()
		time.Sleep(10 * time.Second)
		r.server.Server().AwaitWatches(1)
		require.Equal(t, "1", r.value("n7"))
		require.Less(t, r.requests()-sent, 40, "one name was read, and the others have made no request")
	})
}
