package kubelet_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// podsURL is the kubelet's own /pods, and our source.
type podsURL struct {
	kubelet
	t               *testing.T
	binary, address string
	stop            func() // ends the kubelet
	*sources.Sources
}

func startPodsURL(t *testing.T) *podsURL {
	k := &podsURL{t: t, binary: cluster.PodsURL(t), address: cluster.FreeAddress(t)}
	k.start()
	t.Cleanup(func() { k.stop() })
	return k
}

// start begins the kubelet with these pods.
func (k *podsURL) start(pods ...*corev1.Pod) {
	k.t.Helper()
	command := exec.Command(k.binary, k.address) // it ends with its input
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	require.NoError(k.t, err)
	out, err := command.StdoutPipe()
	require.NoError(k.t, err)
	require.NoError(k.t, command.Start())
	k.kubelet = kubelet{in, bufio.NewReader(out)}
	k.stop = func() {
		require.NoError(k.t, in.Close())
		require.NoError(k.t, command.Wait())
	}
	k.put(pods...)
	k.permit("nodes/pods")
}

func (k *podsURL) tell(command map[string]any) {
	k.t.Helper()
	k.answer(k.t, command, &struct{}{})
}

// put has the kubelet hear of pods.
func (k *podsURL) put(pods ...*corev1.Pod) {
	k.t.Helper()
	for _, pod := range pods {
		k.tell(map[string]any{"pod": pod})
	}
}

// permit lets users get a resource, and no other one.
func (k *podsURL) permit(right string) {
	k.t.Helper()
	k.tell(map[string]any{"right": right})
}

// follow runs our source.
func (k *podsURL) follow(every time.Duration) {
	k.Sources = sources.New("node-1", sources.WithLogger(logr.Discard()),
		sources.Kubelet("http://"+k.address+"/pods", static.WithInterval(every)))
	ctx, cancel := context.WithCancel(k.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- k.Run(ctx) }()
	k.t.Cleanup(func() {
		cancel()
		for range k.Updates() {
		}
		require.NoError(k.t, <-ended)
	})
}

// expect is the next update: its operation and pods.
func (k *podsURL) expect(want string) {
	k.t.Helper()
	select {
	case u := <-k.Updates():
		line := string(u.Op)
		for _, pod := range u.Pods {
			line += " " + pod.Name
		}
		require.Equal(k.t, want, line)
	case <-time.After(patience):
		require.FailNow(k.t, "no update", "%+v", k.Status())
	}
}

// problem waits for a problem with this text, and returns its whole text.
func (k *podsURL) problem(text string) (whole string) {
	k.t.Helper()
	require.Eventually(k.t, func() bool {
		return slices.ContainsFunc(k.Status()[0].Problems, func(err error) bool {
			whole = err.Error()
			return strings.Contains(whole, text)
		})
	}, patience, time.Millisecond, text)
	return whole
}

func (k *podsURL) safe() {
	k.t.Helper()
	require.Eventually(k.t, func() bool { return k.SafeToPrune(sources.KubeletSource) }, patience, time.Millisecond, "%+v", k.Status())
}

// TestPodsOfARestartedKubelet: it has its static pods alone at first. No other pod is removed,
// whether a request has failed meanwhile or not, and nothing is safe to prune.
func TestPodsOfARestartedKubelet(t *testing.T) {
	web, more, etcd := runningPod("web", ""), runningPod("more", ""), runningPod("etcd", "")
	etcd.Annotations["kubernetes.io/config.source"] = "file"
	for name, row := range map[string]struct {
		every time.Duration
		away  func(*podsURL)
	}{
		"seen by a failed request": {100 * time.Millisecond, func(k *podsURL) { k.problem("connection refused") }},
		"between two requests":     {3 * time.Second, func(*podsURL) {}},
	} {
		t.Run(name, func(t *testing.T) {
			k := startPodsURL(t)
			k.put(web, more, etcd)
			k.follow(row.every)
			k.expect("ADD etcd more web")
			k.safe()
			k.stop()
			row.away(k)
			k.start(etcd)
			k.problem("2 pods are kept that the kubelet does not list: it may have started anew")
			require.False(t, k.SafeToPrune(sources.KubeletSource))
			require.Equal(t, 3, k.Status()[0].Pods)
			k.put(web, more)
			k.safe()
			require.Empty(t, k.Status()[0].Problems)
			k.tell(map[string]any{"removed": more.UID})
			k.expect("REMOVE more")
			k.safe()
		})
	}
}

// TestPodsAPIOfARestartedKubelet keeps pods as /pods does.
func TestPodsAPIOfARestartedKubelet(t *testing.T) {
	withEachKubelet(t, func(t *testing.T, k *podsAPI) {
		web, more, etcd := runningPod("web", ""), runningPod("more", ""), runningPod("etcd", "")
		etcd.Annotations["kubernetes.io/config.source"] = "file"
		k.put(web, more, etcd)
		k.follow()
		for pods := 0; pods < 3; { // its list may come between them
			pods += len(k.update().Pods)
		}
		safe := func() bool { return k.SafeToPrune(sources.KubeletSource) }
		require.Eventually(t, safe, patience, time.Millisecond)
		k.stop()
		require.Eventually(t, func() bool { return len(k.Status()[0].Problems) > 0 }, patience, time.Millisecond)
		k.start()
		k.put(etcd)
		require.Eventually(t, func() bool {
			return slices.ContainsFunc(k.Status()[0].Problems, func(err error) bool {
				return strings.Contains(err.Error(), "2 pods are kept that the kubelet does not list: it may have started anew")
			})
		}, patience, time.Millisecond)
		require.False(t, safe())
		require.Equal(t, 3, k.Status()[0].Pods)
		k.put(web, more)
		require.Eventually(t, safe, patience, time.Millisecond)
		require.Empty(t, k.Status()[0].Problems)
	})
}

// TestAFreshKubelet has read nothing yet: its list is told, and is not safe to prune.
func TestAFreshKubelet(t *testing.T) {
	k := startPodsURL(t)
	k.follow(100 * time.Millisecond)
	k.expect("ADD")
	k.problem("the kubelet lists no pod of the API server")
	require.ErrorContains(t, k.Ready(time.Hour), "the kubelet lists no pod of the API server")
	require.False(t, k.SafeToPrune(sources.KubeletSource))
	k.put(runningPod("web", ""))
	k.expect("ADD web")
	k.safe()
	require.NoError(t, k.Ready(time.Hour))
}

// TestTheRightOfPods: the kubelet asks for nodes/pods, and takes nodes/proxy. The error names the
// right that is missing, and nothing of the kubelet's text.
func TestTheRightOfPods(t *testing.T) {
	k := startPodsURL(t)
	k.put(runningPod("web", ""))
	k.permit("nodes/log")
	k.follow(100 * time.Millisecond)
	require.Equal(t, "http://"+k.address+"/pods: the server answered 403 Forbidden: the owner of the token needs the verb get of nodes/pods: "+
		`bind it to a ClusterRole with the rule {apiGroups: [""], resources: [nodes/pods], verbs: [get]}`, k.problem("403"))
	k.permit("nodes/pods")
	k.expect("ADD web")
	k.safe()
	k.permit("nodes/log")
	k.problem("403")
	k.permit("nodes/proxy")
	k.safe()
}
