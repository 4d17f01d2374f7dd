package prom_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/sources"
)

// TestSourcesShow: an API server, with its reflector, and two folders of one name, one of which has
// a bad manifest. The reader stops in the middle of an update.
func TestSourcesShow(t *testing.T) {
	registry, metrics := newMetrics(t)
	api := listwatchtest.New(t, listwatchtest.Pods())
	api.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Spec: corev1.PodSpec{NodeName: "node-1"}})
	good, bad := t.TempDir(), t.TempDir()
	write := func(folder, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(folder, "pod.yaml"), []byte(text), 0o600))
		old := time.Now().Add(-time.Minute) // it is not being written
		require.NoError(t, os.Chtimes(filepath.Join(folder, "pod.yaml"), old, old))
	}
	write(good, "apiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec: {containers: [{name: c, image: i}]}\n")
	write(bad, "apiVersion: v1\nkind: Pod\n")
	reached, err := listwatch.NewRESTClient(api.Server().Config(), corev1.SchemeGroupVersion)
	require.NoError(t, err)
	unreached, stop := server(t)
	stop() // nobody answers
	s := sources.New("node-1",
		sources.APIServer(reached, metrics.Option("node-1/api")),
		sources.APIServer(unreached).Named("other").Optional(0),
		sources.File(good), sources.File(bad))
	forget := metrics.Track("node-1", s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	counted := map[string]int{}
	for synced := false; !synced; {
		select {
		case u := <-s.Updates():
			counted[u.Source+" "+string(u.Op)]++
		case <-s.Synced():
			synced = true
		}
	}
	require.Equal(t, 1, counted["api ADD"])
	api.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}, Spec: corev1.PodSpec{NodeName: "node-1"}})
	require.Eventually(t, func() bool {
		return s.Status()[0].Pending == 1 && len(s.Status()[1].Problems) == 1
	}, time.Minute, time.Millisecond)
	require.Positive(t, s.Status()[0].Lag)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
		# HELP tributary_sources_incomplete 1 while a problem may hide a pod.
		# TYPE tributary_sources_incomplete gauge
		tributary_sources_incomplete{source="api",sources="node-1"} 0
		tributary_sources_incomplete{source="file",sources="node-1"} 1
		tributary_sources_incomplete{source="other",sources="node-1"} 1
		# HELP tributary_sources_pods Pods in the newest state.
		# TYPE tributary_sources_pods gauge
		tributary_sources_pods{source="api",sources="node-1"} 2
		tributary_sources_pods{source="file",sources="node-1"} 1
		tributary_sources_pods{source="other",sources="node-1"} 0
		# HELP tributary_sources_problems Present problems of a class.
		# TYPE tributary_sources_problems gauge
		tributary_sources_problems{class="undecodable",source="file",sources="node-1"} 1
		tributary_sources_problems{class="unreachable",source="other",sources="node-1"} 1
		# HELP tributary_sources_reader_pending_states States that the reader of updates has not read whole.
		# TYPE tributary_sources_reader_pending_states gauge
		tributary_sources_reader_pending_states{source="api",sources="node-1"} 1
		tributary_sources_reader_pending_states{source="file",sources="node-1"} 0
		tributary_sources_reader_pending_states{source="other",sources="node-1"} 0
		# HELP tributary_sources_synced 1 once the first state of every required source has been read.
		# TYPE tributary_sources_synced gauge
		tributary_sources_synced{sources="node-1"} 1
		# HELP tributary_reflector_failing 1 while something is wrong; the class says what.
		# TYPE tributary_reflector_failing gauge
		tributary_reflector_failing{class="unreachable",reflector="node-1/other"} 1
		# HELP tributary_reflector_synced 1 once the store has held a whole state of the server.
		# TYPE tributary_reflector_synced gauge
		tributary_reflector_synced{reflector="node-1/api"} 1
		tributary_reflector_synced{reflector="node-1/other"} 0
	`), "tributary_sources_incomplete", "tributary_sources_pods", "tributary_sources_problems",
		"tributary_sources_reader_pending_states", "tributary_sources_synced", "tributary_reflector_failing", "tributary_reflector_synced"))
	require.Equal(t, "ADD", string((<-s.Updates()).Op))
	require.Eventually(t, func() bool { return s.Status()[0].Updates[sources.Add] == 2 }, time.Minute, time.Millisecond)
	cancel()
	for range s.Updates() {
	}
	require.NoError(t, <-ended)
	forget()
	require.NotZero(t, count(t, registry), "lists and watches are counted under a name of their own")
	metrics.Track("node-1/api", s)()
	require.Zero(t, count(t, registry))
}
