package lookup_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
)

// TestWait for the pod of a container that has just begun: it ends at the change, and no moment
// later.
func TestWait(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.7")
	full := podOf("web", uid(webUID), address("10.0.0.7"), container("containerd://c2", ""))
	for name, row := range map[string]struct {
		seen   lookup.Sight
		before *corev1.Pod
		at     *corev1.Pod // is there when the wait ends, and is found
	}{
		"by its container":                 {lookup.Sight{ContainerID: "containerd://c2"}, nil, full},
		"by its UID":                       {lookup.Sight{UID: webUID}, nil, full},
		"by its address":                   {lookup.Sight{IP: ip}, nil, full},
		"by its cgroup":                    {lookup.Sight{Cgroup: "/kubepods/pod" + webUID + "/c2"}, nil, full},
		"by its container, not by its UID": {lookup.Sight{ContainerID: "c2", UID: webUID}, podOf("web", uid(webUID)), full},
		"by an address that is used again": {lookup.Sight{IP: ip}, podOf("old", address("10.0.0.7"), stops), full},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newScripted(sources.APISource)
				r := start(t, []lookup.Option{lookup.KeepEnded(time.Minute)}, sources.Custom(source))
				source.set(t, podOf("other"))
				if row.before != nil {
					source.set(t, row.before)
				}
				began := time.Now()
				found := make(chan string)
				go func() { found <- nameOf(r.Wait(t.Context(), row.seen)) }()
				time.Sleep(time.Second)
				source.set(t, podOf("other"), podOf("another"))
				time.Sleep(time.Second)
				source.set(t, row.at)
				require.Equal(t, row.at.Name, <-found)
				require.Equal(t, 2*time.Second, time.Since(began))
				require.Equal(t, row.at.Name, nameOf(r.Wait(t.Context(), row.seen)))
				require.Equal(t, 2*time.Second, time.Since(began), "it is there already")
				r.stop()
			})
		})
	}
}

// TestWaitIsBounded: the best answer comes at the end of the context, or after ten seconds.
func TestWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newScripted(sources.APISource)
		r := start(t, nil, sources.Custom(source))
		source.set(t, podOf("web", uid(webUID), address("10.0.0.7")))
		wait := func(ctx context.Context, seen lookup.Sight) (found string, took time.Duration) {
			began := time.Now()
			return nameOf(r.Wait(ctx, seen)), time.Since(began)
		}
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		for _, row := range []struct {
			ctx  context.Context
			seen lookup.Sight
			want string
			took time.Duration
		}{
			{short, lookup.Sight{ContainerID: "c2", Cgroup: "/kubepods/pod" + webUID}, "web", 50 * time.Millisecond},
			{short, lookup.Sight{ContainerID: "c2", IP: netip.MustParseAddr("10.0.0.7")}, "web", 0},
			{t.Context(), lookup.Sight{ContainerID: "c2"}, "", 10 * time.Second},
			{t.Context(), lookup.Sight{}, "", 0},
			{t.Context(), lookup.Sight{Cgroup: "/system.slice/ssh.service"}, "", 0},
		} {
			found, took := wait(row.ctx, row.seen)
			require.Equal(t, row.want, found, "%+v", row.seen)
			require.Equal(t, row.took, took, "%+v", row.seen)
		}
		r.stop()
	})
}

// BenchmarkWait is the time from a change to the answer for a program that waits for it, beside one
// that looks five times, each ten milliseconds later.
func BenchmarkWait(b *testing.B) {
	for name, find := range map[string]func(n *node, id string) *lookup.Pod{
		"wait": func(n *node, id string) *lookup.Pod {
			return n.Wait(context.Background(), lookup.Sight{ContainerID: id})
		},
		"loop": func(n *node, id string) (pod *lookup.Pod) {
			for range 5 {
				if pod = n.ByContainerID(id); pod != nil {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			return pod
		},
	} {
		b.Run(name, func(b *testing.B) {
			source := newScripted(sources.APISource)
			n := start(b, nil, sources.Custom(source))
			var late time.Duration
			made := 0
			for b.Loop() {
				made++
				id := fmt.Sprint("c", made)
				answered := make(chan time.Time)
				go func() {
					find(n, id)
					answered <- time.Now()
				}()
				time.Sleep(time.Duration(made%10) * time.Millisecond)
				changed := time.Now()
				source.set(b, podOf("web", container(id, "")))
				late += (<-answered).Sub(changed)
			}
			b.ReportMetric(float64(late.Microseconds())/float64(made), "µs-late/op")
		})
	}
}

// TestWaitOwner: it ends when the API server has told the owner, or can tell it no more, and is
// bounded.
func TestWaitOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkloads(t)
		w.slowly(2 * time.Second)
		api := newScripted(sources.APISource)
		s := w.running(api)
		there, lost := podOf("a", ownedBy(w.job("nightly-1", "nightly"))), podOf("b", ownedBy(controllerRef("batch/v1", "Job", "lost-1", "none")))
		api.set(t, there)
		began := time.Now()
		owner, known := s.WaitOwner(t.Context(), there)
		require.True(t, known)
		require.Equal(t, "CronJob nightly", owner.Kind+" "+owner.Name)
		require.Equal(t, 2*time.Second, time.Since(began))
		api.set(t, there, lost)
		owner, known = s.WaitOwner(t.Context(), lost)
		require.False(t, known, "a Job that is gone")
		require.Equal(t, "Job lost-1", owner.Kind+" "+owner.Name)
		require.Less(t, time.Since(began), 10*time.Second)

		w.sets.Intercept(func(http.ResponseWriter, *http.Request, http.Handler) { time.Sleep(time.Hour) }, listwatchtest.On(listwatchtest.Get))
		later := podOf("c", ownedBy(w.set("web-1", "web")))
		api.set(t, there, lost, later)
		for within, bound := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: 10 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			began = time.Now()
			_, known = s.WaitOwner(ctx, later)
			cancel()
			require.False(t, known)
			require.Equal(t, bound, time.Since(began))
		}
		s.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		w, api := newWorkloads(t), newScripted(sources.APISource)
		w.sets.Intercept(func(rw http.ResponseWriter, _ *http.Request, _ http.Handler) {
			rw.WriteHeader(http.StatusServiceUnavailable)
		},
			listwatchtest.On(listwatchtest.Get), listwatchtest.UntilLifted())
		s := w.running(api)
		pod := podOf("a", ownedBy(w.set("web-1", "web")))
		api.set(t, pod)
		began := time.Now()
		_, known := s.WaitOwner(t.Context(), pod)
		require.False(t, known)
		require.Less(t, time.Since(began), time.Second, "the API server fails")
		s.stop()
	})
}
