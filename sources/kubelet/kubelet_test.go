package kubelet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/kubelet"
	"github.com/tributary-go/tributary/sources/sourcestest"
)

func TestPodsAPIConforms(t *testing.T) {
	t.Parallel()
	sourcestest.Run(t, func(t *testing.T) sourcestest.Rig {
		f, made := serve(t), 0
		now := map[string]*corev1.Pod{}
		return sourcestest.Rig{
			// Pods that the suite takes away during an outage are gone after it.
			Source: kubelet.Source(kubelet.WithSocket(f.socket), kubelet.WithInterval(time.Second), kubelet.WithGrace(0)),
			Declare: func(names ...string) {
				f.refuse(codes.OK)
				for name, pod := range now {
					if !slices.Contains(names, name) {
						f.forget(pod.UID)
						f.tell(api.EventType_DELETED, pod)
						delete(now, name)
					}
				}
				for _, name := range names {
					if now[name] == nil {
						made++
						now[name] = podOf(name, uid(types.UID(fmt.Sprint(made))))
						f.put(now[name])
						f.tell(api.EventType_ADDED, now[name])
					}
				}
			},
			Break: func() { f.refuse(codes.Internal) },
		}
	})
}

// running is sources with a kubelet alone, and the updates that its test has read.
type running struct {
	*sources.Sources
	t *testing.T
}

func run(t *testing.T, options ...kubelet.Option) running {
	r := running{sources.New("node-1", sources.WithLogger(logr.Discard()), kubelet.PodsAPI(options...)), t}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range r.Updates() {
		}
		require.NoError(t, <-ended)
	})
	return r
}

// expect reads the next update.
func (r running) expect(want string) {
	r.t.Helper()
	select {
	case u := <-r.Updates():
		line := string(u.Op)
		for _, pod := range u.Pods {
			line += " " + pod.Name
			if value := pod.Labels["label"]; value != "" {
				line += "=" + value
			}
		}
		require.Equal(r.t, want, line)
	case <-time.After(patience):
		require.FailNow(r.t, "no update", "want %s; %+v", want, r.Status()[0])
	}
}

func (r running) problem(want string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		return slices.ContainsFunc(r.Status()[0].Problems, func(err error) bool { return strings.HasSuffix(err.Error(), want) })
	}, patience, time.Millisecond, want)
}

func (r running) well() {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return len(r.Status()[0].Problems) == 0 }, patience, time.Millisecond)
}

// TestAChangeWithoutAnEvent: labels come with the next list.
func TestAChangeWithoutAnEvent(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.put(podOf("web", label("old")))
	r := run(t, kubelet.WithSocket(f.socket), kubelet.WithInterval(time.Second))
	r.expect("ADD web=old")
	f.put(podOf("web", label("new")))
	r.expect("UPDATE web=new")
	// the next list may be pending
	require.Eventually(t, func() bool { return r.SafeToPrune(sources.KubeletSource) }, patience, time.Millisecond)
}

// TestDeletedButListed: the pod is gone, although lists and new watches hold it.
func TestDeletedButListed(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.put(podOf("web"), podOf("other"))
	r := run(t, kubelet.WithSocket(f.socket), kubelet.WithInterval(time.Second))
	r.expect("ADD other web")
	f.tell(api.EventType_DELETED, podOf("web"))
	r.expect("REMOVE web")
	f.cut()
	f.tell(api.EventType_MODIFIED, podOf("web"))
	lists := f.listed()
	require.Eventually(t, func() bool { return f.watched() && f.listed() > lists+1 }, patience, time.Millisecond)
	f.put(podOf("end")) // nothing else comes before it
	r.expect("ADD end")
}

// TestLostEvents: a cut watch has lost events of every kind, and the list after it has them.
func TestLostEvents(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.put(podOf("gone"), podOf("web", label("old")))
	r := run(t, kubelet.WithSocket(f.socket), kubelet.WithInterval(time.Second), kubelet.WithGrace(0))
	r.expect("ADD gone web=old")
	f.forget("gone")
	f.put(podOf("web", label("new")), podOf("more"))
	f.cut()
	r.expect("REMOVE gone")
	r.expect("ADD more")
	r.expect("UPDATE web=new")
	r.well()
	// Events that are dropped for everyone leave no trace: the timer's list has them.
	f.forget("more")
	r.expect("REMOVE more")
}

// TestARestartedKubelet lists nothing until it has read its own sources.
func TestARestartedKubelet(t *testing.T) {
	t.Parallel()
	f := serve(t)
	web, etcd := podOf("web"), podOf("etcd", static)
	f.put(web, etcd)
	r := run(t, kubelet.WithSocket(f.socket), kubelet.WithInterval(time.Second), kubelet.WithGrace(time.Millisecond))
	r.expect("ADD etcd web")
	f.server.Stop()
	r.problem("there is no socket: is the feature gate PodsAPI of the kubelet on?")
	f.forget("web")
	f.start()
	r.problem("1 pods are kept that the kubelet does not list: it may have started anew")
	r.problem("the kubelet lists no pod of the API server: it may have just started, so that pods are missing")
	require.False(t, r.SafeToPrune(sources.KubeletSource))
	f.put(web)
	r.well()
	// From here on, a pod that is missing is gone.
	f.forget("web")
	r.expect("REMOVE web")
}

// TestNotReady: FAILED_PRECONDITION is no empty list.
func TestNotReady(t *testing.T) {
	t.Parallel()
	f := serve(t)
	f.refuse(codes.FailedPrecondition)
	r := run(t, kubelet.WithSocket(f.socket), kubelet.WithInterval(time.Second))
	r.problem(f.socket + ": watch: the kubelet has not read its own sources yet")
	r.problem(f.socket + ": list: the kubelet has not read its own sources yet")
	require.False(t, r.Status()[0].Seen)
	f.put(podOf("web"))
	f.refuse(codes.OK)
	r.expect("ADD web")
	r.well()
	f.refuse(codes.FailedPrecondition)
	r.problem(f.socket + ": list: the kubelet has not read its own sources yet")
	require.False(t, r.SafeToPrune(sources.KubeletSource))
	require.Equal(t, 1, r.Status()[0].Pods)
}

// TestListsAreFew: however many events come, at most one list a second.
func TestListsAreFew(t *testing.T) {
	t.Parallel()
	f := serve(t)
	began := time.Now()
	r := run(t, kubelet.WithSocket(f.socket), kubelet.WithInterval(time.Second))
	r.expect("ADD")
	for i := range 500 {
		pod := podOf("web", since(int64(i)))
		f.put(pod)
		f.tell(api.EventType_MODIFIED, pod)
	}
	require.Eventually(t, func() bool { return f.listed() >= 3 }, patience, time.Millisecond)
	require.LessOrEqual(t, f.listed(), 1+int(time.Since(began)/time.Second))
	for u := range r.Updates() {
		if u.Pods[0].Status.StartTime.Unix() == 499 {
			break
		}
	}
}

func TestErrorsNameTheSocketAndTheCode(t *testing.T) {
	t.Parallel()
	f := serve(t)
	for code, why := range map[codes.Code]string{
		codes.Unimplemented:     "the kubelet does not know the request: is the feature gate PodsAPI of the kubelet on?",
		codes.PermissionDenied:  "the kubelet refuses this program (PermissionDenied)",
		codes.Internal:          "the kubelet failed (Internal)",
		codes.ResourceExhausted: "the kubelet refuses more for now (ResourceExhausted)",
	} {
		f.refuse(code)
		r := run(t, kubelet.WithSocket(f.socket))
		r.problem(f.socket + ": watch: " + why)
		for _, problem := range r.Status()[0].Problems {
			require.NotContains(t, problem.Error(), "hunter2")
		}
	}
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for want, option := range map[string]kubelet.Option{
		`kubelet: WithSocket(""): give the path of the kubelet's socket`:                 kubelet.WithSocket(""),
		"kubelet: WithInterval(10ms): give 1s or more, as a kubelet limits its requests": kubelet.WithInterval(10 * time.Millisecond),
		"kubelet: WithGrace(-1s): give zero or more":                                     kubelet.WithGrace(-time.Second),
	} {
		s := sources.New("node-1", sources.WithLogger(logr.Discard()), kubelet.PodsAPI(option))
		require.ErrorContains(t, s.Run(t.Context()), want)
	}
}
