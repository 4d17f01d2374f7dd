package informer_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/informer"
)

// opaque turns a revision into a version without an order.
func opaque(revision int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(revision)))
	return "x" + hex.EncodeToString(sum[:4])
}

// waiting starts a wait. The returned function reports whether it has ended without an error, once
// all goroutines of the bubble are blocked.
func waiting(t *testing.T, wait func() error) (ended func() bool) {
	done := make(chan error, 1)
	go func() { done <- wait() }()
	return func() bool {
		synctest.Wait()
		select {
		case err := <-done:
			require.NoError(t, err)
			return true
		default:
			return false
		}
	}
}

// TestWaitFor runs each case on a server whose versions can be compared, and on one whose cannot.
func TestWaitFor(t *testing.T) {
	type pods = informer.Informer[*corev1.Pod]
	for name, c := range map[string]func(t *testing.T, s *server, i *pods){
		"a write that has come": func(t *testing.T, s *server, i *pods) {
			pod := s.put("a")
			synctest.Wait()
			require.NoError(t, i.WaitFor(t.Context(), pod))
		},
		"a write that has been overtaken": func(t *testing.T, s *server, i *pods) {
			pod := s.put("a")
			s.put("a")
			synctest.Wait()
			require.NoError(t, i.WaitFor(t.Context(), pod))
		},
		"a write that comes": func(t *testing.T, s *server, i *pods) {
			pod := s.put("a").DeepCopy()
			synctest.Wait()
			pod.ResourceVersion = s.version(3)
			ended := waiting(t, func() error { return i.WaitFor(t.Context(), pod) })
			require.False(t, ended())
			s.put("a")
			require.True(t, ended())
		},
		"a write that is deleted": func(t *testing.T, s *server, i *pods) {
			pod := s.put("a")
			s.remove("a")
			synctest.Wait()
			require.NoError(t, i.WaitFor(t.Context(), pod))
		},
		"a write that a list brings": func(t *testing.T, s *server, i *pods) {
			s.silence()
			pod := s.put("a")
			s.put("a")
			ended := waiting(t, func() error { return i.WaitFor(t.Context(), pod) })
			require.False(t, ended())
			s.disconnect(true)
			time.Sleep(5 * time.Second) // simulated time
			require.True(t, ended())
		},
		"a deletion that has come": func(t *testing.T, s *server, i *pods) {
			pod := s.remove("a")
			synctest.Wait()
			require.NoError(t, i.WaitForDeletion(t.Context(), pod))
		},
		"a deletion that comes": func(t *testing.T, s *server, i *pods) {
			pod := s.put("a")
			ended := waiting(t, func() error { return i.WaitForDeletion(t.Context(), pod) })
			require.False(t, ended())
			s.put("a")
			require.False(t, ended())
			s.remove("a")
			require.True(t, ended())
		},
		"a deletion before a recreation": func(t *testing.T, s *server, i *pods) {
			pod := s.put("a")
			s.remove("a")
			again := s.put("a")
			synctest.Wait()
			require.NoError(t, i.WaitForDeletion(t.Context(), pod))
			require.False(t, waiting(t, func() error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				require.ErrorIs(t, i.WaitForDeletion(ctx, again), context.DeadlineExceeded)
				return nil
			})())
			time.Sleep(2 * time.Second)
		},
		"a deletion of what has not come": func(t *testing.T, s *server, i *pods) {
			s.silence()
			pod := s.put("new")
			ended := waiting(t, func() error { return i.WaitForDeletion(t.Context(), pod) })
			require.False(t, ended(), "that it is not there does not mean that it is gone")
			s.remove("new")
			s.disconnect(false)
			time.Sleep(5 * time.Second)
			require.True(t, ended())
		},
	} {
		for order, version := range map[string]func(int) string{"comparable": strconv.Itoa, "opaque": opaque} {
			t.Run(name+"/"+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newServer()
					s.version = version
					s.put("a")
					c(t, s, running(t, s))
				})
			})
		}
	}
}

func TestWaitForResourceVersion(t *testing.T) {
	for order, version := range map[string]func(int) string{"comparable": strconv.Itoa, "opaque": opaque} {
		t.Run(order, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.version = version
				s.put("a")
				i := running(t, s)
				require.NoError(t, i.WaitForResourceVersion(t.Context(), version(1)))
				ended := waiting(t, func() error { return i.WaitForResourceVersion(t.Context(), version(2)) })
				require.False(t, ended())
				s.bookmark()
				require.True(t, ended(), "a bookmark counts")
			})
		})
	}
}

func TestWaitsNameWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer("a")
		i := informer.New[*corev1.Pod](s)
		stop := start(t, i)
		require.NoError(t, i.WaitSynced(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		future := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "9"}}
		err := i.WaitFor(ctx, future)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, `informer: wait for ns/a at version "9": context deadline exceeded: the store is at version "1"`)
		require.ErrorContains(t, i.WaitFor(ctx, nil), "the object is nil")
		require.ErrorContains(t, i.WaitFor(ctx, &corev1.Pod{}), "no resource version")
		require.ErrorContains(t, i.WaitForDeletion(ctx, &corev1.Pod{}), "no resource version")
		require.ErrorContains(t, i.WaitForResourceVersion(ctx, "0"), "names no state")
		ended := make(chan error)
		go func() { ended <- i.WaitFor(t.Context(), future) }()
		synctest.Wait()
		require.NoError(t, stop())
		require.ErrorIs(t, <-ended, informer.ErrStopped)
	})
}

// TestWaitForAnotherKind: if objects carry their kind, an object of another kind is refused at
// once.
func TestWaitForAnotherKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWidgets(t)
		a := w.create("a")
		i := informer.New(w.ListerWatcher())
		go func() { _ = i.Run(t.Context()) }()
		require.NoError(t, i.WaitSynced(t.Context()))
		require.NoError(t, i.WaitFor(t.Context(), a))
		gadget := a.DeepCopy()
		gadget.SetKind("Gadget")
		const want = `ns/a: it is a Gadget.example.com, but this collection holds objects of kind Widget.example.com`
		require.ErrorContains(t, i.WaitFor(t.Context(), gadget), want)
		require.ErrorContains(t, i.WaitForDeletion(t.Context(), gadget), want)
	})
}
