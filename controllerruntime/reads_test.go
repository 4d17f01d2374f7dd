package controllerruntime_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tributary-go/tributary/controllerruntime"
)

// readsRig reconciles requests as a controller does. Each reads the Secrets that refers has.
type readsRig struct {
	*leanRig
	queue  workqueue.TypedRateLimitingInterface[string]
	reads  *controllerruntime.Reads[string]
	refers map[string][]string
	fails  error
	saw    map[string]string // the last values, by request and name
}

func newReadsRig(t *testing.T) *readsRig {
	r := &readsRig{
		leanRig: newLeanRig(t, cache.Options{}), refers: map[string][]string{}, saw: map[string]string{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	t.Cleanup(r.queue.ShutDown)
	r.reads = controllerruntime.NewReads(r)
	return r
}

func (r *readsRig) Reconcile(ctx context.Context, request string) (reconcile.Result, error) {
	for _, name := range r.refers[request] {
		var obj corev1.Secret
		err := r.Get(ctx, keyOf("ns", name), &obj)
		if err != nil && !apierrors.IsNotFound(err) {
			return reconcile.Result{}, err
		}
		r.saw[request+" "+name] = string(obj.Data["value"])
	}
	return reconcile.Result{}, r.fails
}

// reconcile reconciles one request.
func (r *readsRig) reconcile(request string) {
	r.t.Helper()
	_, err := r.reads.Reconcile(r.t.Context(), request)
	require.NoError(r.t, err)
}

// settle reconciles what is queued, until nothing is, and returns what it was.
func (r *readsRig) settle() map[string]int {
	reconciled := map[string]int{}
	for {
		synctest.Wait()
		if r.queue.Len() == 0 {
			return reconciled
		}
		request, _ := r.queue.Get()
		reconciled[request]++
		r.reconcile(request)
		r.queue.Done(request)
	}
}

// TestReads: a request is queued when an object that it has read last is another one now, and not
// for objects that it reads no more, nor for what it has seen itself.
func TestReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReadsRig(t)
		r.put("tls", "1")
		r.put("db", "1")
		start(t, r)
		_, err := r.reads.Reconcile(t.Context(), "a")
		require.ErrorContains(t, err, "give it to WatchesRawSource too")
		require.NoError(t, r.reads.Start(t.Context(), r.queue))

		r.refers["a"], r.refers["b"] = []string{"tls", "later"}, []string{"tls", "db"}
		r.reconcile("a")
		r.reconcile("b")
		require.Empty(t, r.settle(), "a first read is no change")
		r.put("db", "2")
		require.Equal(t, map[string]int{"b": 1}, r.settle())
		require.Equal(t, "2", r.saw["b db"])
		r.put("tls", "2")
		require.Equal(t, map[string]int{"a": 1, "b": 1}, r.settle())
		r.put("later", "1")
		require.Equal(t, map[string]int{"a": 1}, r.settle())
		require.Equal(t, "1", r.saw["a later"])
		r.secrets.Delete(secret("later", ""))
		require.Equal(t, map[string]int{"a": 1}, r.settle())

		r.refers["b"] = []string{"db"}
		r.reconcile("b")
		r.put("tls", "3")
		require.Equal(t, map[string]int{"a": 1}, r.settle())

		r.fails = errors.New("half way")
		r.refers["b"] = nil
		_, err = r.reads.Reconcile(t.Context(), "b")
		require.Error(t, err)
		r.fails = nil
		r.put("db", "3")
		require.Equal(t, map[string]int{"b": 1}, r.settle(), "it may have read less than it refers to")
		r.put("db", "4")
		require.Empty(t, r.settle())
	})
}

// TestReadsKeep: an object that a request refers to is kept, however seldom it is reconciled.
func TestReadsKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReadsRig(t)
		r.put("tls", "1")
		start(t, r)
		require.NoError(t, r.reads.Start(t.Context(), r.queue))
		r.refers["a"] = []string{"tls"}
		r.reconcile("a")
		time.Sleep(10 * time.Hour)
		require.Empty(t, r.settle())
		r.put("tls", "2")
		require.Equal(t, map[string]int{"a": 1}, r.settle())
		r.refers["a"] = nil
		r.reconcile("a")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		before := len(r.requests())
		time.Sleep(10 * time.Hour)
		require.Len(t, r.requests(), before, "it is let go")
	})
}

// TestReadsOfAChangeMeanwhile: a change between a read and the end of its reconcile is not lost.
func TestReadsOfAChangeMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReadsRig(t)
		r.put("tls", "1")
		start(t, r)
		r.refers["a"], r.refers["b"] = []string{"tls"}, []string{"tls"}
		r.reads = controllerruntime.NewReads(reconcile.TypedFunc[string](
			func(ctx context.Context, request string) (reconcile.Result, error) {
				result, err := r.Reconcile(ctx, request)
				if request == "a" && r.saw["a tls"] == "1" {
					r.put("tls", "2")
					synctest.Wait() // the watch has told it
				}
				return result, err
			}))
		require.NoError(t, r.reads.Start(t.Context(), r.queue))
		r.reconcile("b")
		require.Empty(t, r.settle())
		r.reconcile("a")
		require.Equal(t, map[string]int{"a": 1, "b": 1}, r.settle())
		require.Equal(t, "2", r.saw["a tls"])
	})
}
