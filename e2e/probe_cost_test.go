package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// What probes cost kube-apiserver and etcd: requests an hour by the number of copies over one
// client, as the server counts them, and the processor time of each kind of probe.
func TestProbeCost(t *testing.T) {
	pods, probes, window := 500, 50, 2*often
	if full {
		pods, probes, window = manyPods, 1000, 6*often
	}
	c := cluster.Start(t)
	w := newWorld(t, c)
	w.fill(pods)
	processorTime(t, w, probes)

	result := table("copies", "LISTs while all sync and ask once themselves", "LISTs after that", "in", "requests an hour, at one probe a minute")
	for _, copies := range []int{1, 100, 1000} {
		if copies > 100 && !full {
			continue
		}
		first, later, took := probeRate(t, w, copies, window)
		hourly := float64(later)*float64(often)/float64(time.Minute)*float64(time.Hour)/float64(took) + ownProbes(copies)
		result.add(copies, first, later, took.Round(100*time.Millisecond), int(hourly+0.5))
		require.LessOrEqual(t, later, int(3*took/often)+1, "copies of one client share their probes")
	}
	t.Logf("probes every %s; a minute is assumed for the hour, and a probe of its own for each of several copies every 15 minutes\n%s", often, result)
}

// ownProbes is how many probes an hour several copies make for themselves: one each 15 minutes.
func ownProbes(copies int) float64 {
	if copies == 1 {
		return 0 // each probe is its own
	}
	return float64(4 * copies)
}

// probeRate follows the pods of so many nodes over one client, and counts the LISTs of pods that
// the server has answered: until each copy has probed by itself, and in a window after that.
func probeRate(t *testing.T, w *world, copies int, window time.Duration) (first, later int, took time.Duration) {
	t.Helper()
	client, err := kubernetes.NewForConfig(w.cluster.Server.Config(cluster.Agent))
	require.NoError(t, err)
	before := w.listsOfPods()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	all := make([]*reflector.Reflector[*corev1.Pod], copies)
	for i := range all { // of most nodes there are no pods
		node := fields.OneTermEqualSelector("spec.nodeName", fmt.Sprintf("node-%02d", i))
		source := listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods", listwatch.Fields(node))
		all[i] = reflector.New(source, store.NewIndexer[*corev1.Pod](), reflector.WithProof(often))
		running.Go(func() { _ = all[i].Run(ctx) })
	}
	for _, r := range all {
		require.NoError(t, r.WaitSynced(ctx))
	}
	pass(2 * often)
	asked := w.listsOfPods()
	began := time.Now()
	pass(window)
	now := w.listsOfPods()
	took = time.Since(began)
	for _, r := range all {
		require.NoError(t, r.Status().ProbeErr)
	}
	return asked - before, now - asked, took
}

// listsOfPods is how many LISTs of pods the server has answered so far.
func (w *world) listsOfPods() (n int) {
	w.t.Helper()
	body, err := w.client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(w.t.Context())
	require.NoError(w.t, err)
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `resource="pods"`) && strings.Contains(line, `verb="LIST"`) {
			value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			require.NoError(w.t, err)
			n += int(value)
		}
	}
	require.NoError(w.t, lines.Err())
	return n
}

// processorTime makes probes of both kinds one after the other, and measures what they cost.
func processorTime(t *testing.T, w *world, probes int) {
	t.Helper()
	client, err := kubernetes.NewForConfig(w.cluster.Server.Config(cluster.Agent))
	require.NoError(t, err)
	source := listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods")
	last := newPod("the-last", nodeName(0))
	last.Labels["only"] = "one"
	_, err = w.client.CoreV1().Pods(last.Namespace).Create(t.Context(), last, metav1.CreateOptions{})
	require.NoError(t, err)
	result := table("probe", "number", "each took", "kube-apiserver", "etcd", "idle beside it")
	idle := w.spent(t, func() { pass(2 * often) })
	for _, kind := range []struct {
		name string
		ask  func(i int) listwatch.List[*corev1.Pod]
	}{
		{"LIST of all, limit=1", func(int) listwatch.List[*corev1.Pod] {
			return source.List(t.Context(), metav1.ListOptions{Limit: 1})
		}},
		{"LIST of one name", func(i int) listwatch.List[*corev1.Pod] {
			list, ok := source.Lookup(t.Context(), "default", podName(i%w.filled))
			require.True(t, ok)
			return list
		}},
		{"LIST by label, limit=1, for comparison", func(int) listwatch.List[*corev1.Pod] {
			return source.List(t.Context(), metav1.ListOptions{LabelSelector: "only=one", Limit: 1})
		}},
		{"LIST of all, limit=500, for comparison", func(int) listwatch.List[*corev1.Pod] {
			return source.List(t.Context(), metav1.ListOptions{Limit: 500})
		}},
	} {
		n := probes
		if strings.HasPrefix(kind.name, "LIST of all, limit=500") {
			n /= 20
		}
		did := w.spent(t, func() {
			for i := range n {
				some := 0
				for _, err := range kind.ask(i).Items {
					require.NoError(t, err)
					some++
				}
				require.Positive(t, some)
			}
		})
		each := func(spent, idling time.Duration) time.Duration {
			mean := spent - time.Duration(float64(idling)*float64(did.took)/float64(idle.took))
			return (mean / time.Duration(n)).Round(time.Microsecond)
		}
		result.add(kind.name, n, (did.took / time.Duration(n)).Round(time.Microsecond), each(did.server, idle.server), each(did.etcd, idle.etcd),
			fmt.Sprintf("%s and %s in %s", idle.server, idle.etcd, idle.took.Round(time.Second)))
	}
	t.Logf("processor time of a probe, of %d pods, without what both spend idly\n%s", w.filled, result)
}

// cost is processor time.
type cost struct{ took, server, etcd time.Duration }

func (w *world) spent(t *testing.T, do func()) cost {
	t.Helper()
	began, server, etcd := time.Now(), w.cluster.Server.CPU(), w.cluster.Etcd.CPU()
	do()
	return cost{time.Since(began), w.cluster.Server.CPU() - server, w.cluster.Etcd.CPU() - etcd}
}
