package sources_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

// listed is a pod of a kubelet's /pods: of the API server, or else of a file.
func listed(name, source string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"default","name":%q,"uid":%q,"annotations":{`+
		`"kubernetes.io/config.source":%q,"kubernetes.io/config.seen":%q}},`+
		`"spec":{"nodeName":"node-1","containers":[{"name":"main","image":"v1"}]}}`, name, "uid-"+name, source, firstSeen)
}

// firstSeen is when the kubelet of a test first saw its pods.
const firstSeen = "2026-11-25T10:00:00.123456789Z"

var webOfAPI, moreOfAPI, etcdOfFile = listed("web", "api"), listed("more", "api"), listed("etcd", "file")

// kubeletOf polls the /pods of a server every few milliseconds.
func kubeletOf(t *testing.T, server *web, options ...static.Option) *rig {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return start(t, sources.Kubelet(server.URL+"/pods", append(options, static.WithInterval(5*time.Millisecond), static.WithTransport(transport))...))
}

func (r *rig) safe(want bool) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.SafeToPrune(sources.KubeletSource) == want }, patience, time.Millisecond, "%+v", r.Status())
}

const (
	kept  = "2 pods are kept that the kubelet does not list: it may have started anew"
	doubt = "the kubelet lists no pod of the API server: it may have just started, so that pods are missing"
)

// seenAt is a list of a kubelet that first saw its pods at another time, as it has started anew; or
// at none, of a server that stands for a kubelet.
func seenAt(at string, items ...string) http.HandlerFunc {
	return body(strings.ReplaceAll(podList(items...), firstSeen, at))
}

// TestARestartedKubeletOverPods: at first it lists its static pods alone. The others are kept until
// two lists with pods of the API server lack them. The restart shows in the lists, or may show in
// failed requests, but not in the connection: that to a proxy goes on.
func TestARestartedKubeletOverPods(t *testing.T) {
	for name, row := range map[string]struct {
		first, then string
		away        func(*testing.T, *web)
	}{
		"after failed requests": {firstSeen, "2026-11-25T11:00:00Z", func(t *testing.T, server *web) {
			server.now(hijacked(""))
			server.askedAgain(t)
		}},
		"over new connections": {firstSeen, "2026-11-25T11:00:00Z", func(_ *testing.T, server *web) {
			server.CloseClientConnections()
		}},
		"over the same connection": {firstSeen, "2026-11-25T11:00:00Z", func(*testing.T, *web) {}},
		"without the times":        {"", "", func(*testing.T, *web) {}},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, seenAt(row.first, webOfAPI, moreOfAPI, etcdOfFile))
			r := kubeletOf(t, server)
			r.expect("ADD kubelet etcd=v1 more=v1 web=v1")
			r.healthy()
			r.safe(true)

			row.away(t, server)
			server.now(seenAt(row.then, etcdOfFile))
			r.problem(kept)
			r.problem(doubt)
			require.False(t, r.SafeToPrune(sources.KubeletSource))
			require.Len(t, r.Merged(), 3)
			require.Empty(t, notRight(r.Sources, sources.KubeletSource), "it was proven a moment ago")

			server.now(seenAt(row.then, webOfAPI, etcdOfFile))
			r.expect("REMOVE kubelet more=v1")
			r.healthy()
			r.safe(true)
		})
	}
}

// TestTheLastPodOfAKubelet: the list without it is of the kubelet that had it, so that it is gone.
func TestTheLastPodOfAKubelet(t *testing.T) {
	server := serve(t, body(podList(webOfAPI, etcdOfFile)))
	r := kubeletOf(t, server)
	r.expect("ADD kubelet etcd=v1 web=v1")
	server.now(hijacked(""))
	server.askedAgain(t)
	server.now(body(podList(etcdOfFile)))
	r.expect("REMOVE kubelet web=v1")
	r.healthy()
	r.safe(true)
}

// TestStaticPodsOfAKubeletAreToldApart by the source of the kubelet that they are of.
func TestStaticPodsOfAKubeletAreToldApart(t *testing.T) {
	server := serve(t, body(podList(webOfAPI, etcdOfFile, strings.Replace(moreOfAPI, `"kubernetes.io/config.source":"api",`, "", 1))))
	u := kubeletOf(t, server).update()
	require.Equal(t, "ADD kubelet etcd=v1 more=v1 web=v1", describe(u))
	for i, want := range []string{"file", "kubelet", "api"} {
		require.Equal(t, want, u.Pods[i].Annotations[manifest.SourceAnnotation], u.Pods[i].Name)
	}
}

// TestAFirstListOfAKubeletProvesNothing without a pod of the API server. Verdict, Ready, metrics
// and SafeToPrune say so.
func TestAFirstListOfAKubeletProvesNothing(t *testing.T) {
	for want, first := range map[string]string{"ADD kubelet": podList(), "ADD kubelet etcd=v1": podList(etcdOfFile)} {
		server := serve(t, body(first))
		r := kubeletOf(t, server)
		r.expect(want)
		<-r.Synced()
		r.problem(server.URL + "/pods: " + doubt)
		require.False(t, r.SafeToPrune(sources.KubeletSource))
		require.EqualError(t, r.Ready(0), "kubelet: "+server.URL+"/pods: "+doubt)
		require.Equal(t, reflector.Class("not_ready"), r.Status()[0].Verdict(0).Class)
		require.Equal(t, "not_ready", notRight(r.Sources, sources.KubeletSource))
		server.now(body(podList(etcdOfFile, webOfAPI)))
		for !strings.Contains(r.next(), "web=v1") {
		}
		r.healthy()
		r.safe(true)
		require.NoError(t, r.Ready(time.Minute))
	}
}

// TestAKubeletOfAnotherNode: its pods are told, and prove nothing.
func TestAKubeletOfAnotherNode(t *testing.T) {
	server := serve(t, body(podList(strings.Replace(webOfAPI, "node-1", "node-2", 1))))
	r := kubeletOf(t, server)
	r.expect("ADD kubelet web=v1")
	<-r.Synced() // the status knows that the reader has it
	r.problem(`it lists pods of the node "node-2", and not of "node-1"`)
	require.False(t, r.SafeToPrune(sources.KubeletSource))
	require.Equal(t, reflector.NotFound, r.Status()[0].Verdict(0).Class)
}

// TestAKubeletThatHearsNoAPIServer lists its static pods alone for hours. The doubt makes the state
// stale. The others are kept for an hour, and nothing is ever safe to prune.
func TestAKubeletThatHearsNoAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := atomic.Pointer[string]{}
		all, static1 := podList(webOfAPI, etcdOfFile), strings.ReplaceAll(podList(etcdOfFile), firstSeen, "2026-11-25T11:00:00Z")
		answer.Store(&all)
		transport := roundTripper(func(*http.Request) (*http.Response, error) {
			recorder := httptest.NewRecorder()
			text := answer.Load()
			if text == nil {
				recorder.WriteHeader(http.StatusServiceUnavailable)
				return recorder.Result(), nil
			}
			recorder.WriteString(*text)
			return recorder.Result(), nil
		})
		r := start(t, sources.WithLogger(logr.Discard()), sources.Kubelet("http://kubelet/pods", static.WithTransport(transport)))
		r.expect("ADD kubelet etcd=v1 web=v1")
		time.Sleep(61 * time.Second) // between two polls
		require.NoError(t, r.Ready(time.Minute))
		require.True(t, r.SafeToPrune(sources.KubeletSource))
		answer.Store(nil)
		time.Sleep(20 * time.Second)
		answer.Store(&static1)
		time.Sleep(20 * time.Second)
		require.NoError(t, r.Ready(2*time.Minute), "it was proven a minute ago")
		time.Sleep(5 * time.Minute)
		require.ErrorContains(t, r.Ready(2*time.Minute), "kubelet: not proven for ")
		require.Equal(t, reflector.Stale, r.Status()[0].Verdict(2*time.Minute).Class)
		require.NoError(t, r.Ready(0))
		require.False(t, r.SafeToPrune(sources.KubeletSource))
		time.Sleep(53 * time.Minute)
		require.Len(t, r.Merged(), 2)
		time.Sleep(2 * time.Minute)
		r.expect("REMOVE kubelet web=v1")
		time.Sleep(10 * time.Hour)
		require.False(t, r.SafeToPrune(sources.KubeletSource))
		require.Len(t, r.Status()[0].Problems, 1)
		answer.Store(&all)
		time.Sleep(20 * time.Second)
		r.expect("ADD kubelet web=v1")
		synctest.Wait()
		require.True(t, r.SafeToPrune(sources.KubeletSource))
		require.NoError(t, r.Ready(time.Minute))
		r.stop()
		<-r.done
	})
}

// TestABadPodOfAKubelet costs itself alone, and may be any pod that is missing.
func TestABadPodOfAKubelet(t *testing.T) {
	server := serve(t, body(podList(webOfAPI, moreOfAPI)))
	r := kubeletOf(t, server)
	r.expect("ADD kubelet more=v1 web=v1")
	server.now(body(podList(webOfAPI, `{"metadata":{"name":"hunter2","labels":7}}`)))
	problem := r.problem("a pod of the kubelet cannot be decoded")
	require.NotContains(t, problem, "hunter2")
	require.False(t, r.SafeToPrune(sources.KubeletSource))
	server.now(body(podList(webOfAPI)))
	r.expect("REMOVE kubelet more=v1")
}

// TestTheForbiddenPodsOfAKubelet: the error names the missing right, and the rule that gives it.
func TestTheForbiddenPodsOfAKubelet(t *testing.T) {
	const said = "Forbidden (user=system:serviceaccount:hunter2:hunter2, verb=get, resource=nodes, subresource(s)=%s)\n"
	for name, row := range map[string]struct{ path, said, want string }{
		"a kubelet from 1.33": {"/pods", fmt.Sprintf(said, "[pods proxy]"), "the verb get of nodes/pods: bind it to a ClusterRole with the rule " +
			`{apiGroups: [""], resources: [nodes/pods], verbs: [get]}`},
		"an older kubelet": {"/pods", fmt.Sprintf(said, "[proxy]"), "the verb get of nodes/proxy: bind it to a ClusterRole with the rule " +
			`{apiGroups: [""], resources: [nodes/proxy], verbs: [get]}; with the feature gate KubeletFineGrainedAuthz, ` +
			"which is on from Kubernetes 1.33, the kubelet would take nodes/pods"},
		"any other": {"/pods", "hunter2", "the verb get of nodes/pods: bind it to a ClusterRole with the rule " +
			`{apiGroups: [""], resources: [nodes/pods], verbs: [get]}; a kubelet without the feature gate KubeletFineGrainedAuthz, ` +
			"which is on from Kubernetes 1.33, wants nodes/proxy in its place"},
		"through an API server": {"/api/v1/nodes/node-1/proxy/pods", "hunter2", "the verb get of nodes/proxy: bind it to a ClusterRole with the rule " +
			`{apiGroups: [""], resources: [nodes/proxy], verbs: [get]}, since the URL goes through an API server`},
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, row.said, http.StatusForbidden) })
			r := start(t, sources.Kubelet(server.URL+row.path))
			r.problem("403")
			require.EqualError(t, r.Status()[0].Problems[0],
				server.URL+row.path+": the server answered 403 Forbidden: the owner of the token needs "+row.want)
		})
	}
}
