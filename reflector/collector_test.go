package reflector_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/internal/race"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

type link struct {
	next *link
	_    [7]*link // as far apart as objects are
}

// heapOf is a list of so many links in no order, which takes a collector long to follow.
func heapOf(links int) *link {
	all := make([]*link, links)
	for i := range all {
		all[i] = &link{}
	}
	rand.Shuffle(links, func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range links - 1 {
		all[i].next = all[i+1]
	}
	return all[0]
}

// TestNoEventWaitsForTheCollector holds a collection open in its last step, before it stops the
// world: one goroutine is in a loop that cannot be preempted, so that its processor does not come
// to the barrier. From there on, the runtime parks whoever reads a weak pointer. Times are real, as
// the collector is.
func TestNoEventWaitsForTheCollector(t *testing.T) {
	if race.Enabled {
		t.Skip("it is a test of time, and without a race")
	}
	if !strings.Contains(os.Getenv("GODEBUG"), "asyncpreemptoff=1") {
		again := exec.Command(os.Args[0], "-test.run=^TestNoEventWaitsForTheCollector$", "-test.v")
		again.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
		out, err := again.CombinedOutput()
		t.Logf("%s", out)
		require.NoError(t, err)
		return
	}
	for _, row := range []struct {
		name    string
		options []listwatch.Option
	}{{"sharing", nil}, {"plain", []listwatch.Option{listwatch.WithoutSharing()}}} {
		t.Run(row.name, func(t *testing.T) {
			worst, held := stall(t, row.options...)
			t.Logf("the collector was held for %v; the slowest event took %v", held, worst)
			require.Less(t, worst, held/3)
		})
	}
}

// stall returns the least of three rounds' slowest events, and how long each round was.
func stall(t *testing.T, options ...listwatch.Option) (worst, hold time.Duration) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	w := &watchBody{frames: make(chan []byte)}
	client, err := listwatch.NewRESTClient(&rest.Config{Host: "http://api.example", QPS: -1, Transport: w}, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	copied := &updates{Indexer: store.NewIndexer[*corev1.Pod](), updated: make(chan struct{})}
	r := reflector.New(listwatch.FromClient[corev1.Pod](client, "pods", options...), copied, reflector.WithLogger(logr.Discard()))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	for i := range 100 {
		w.frames <- largeFrame(t, "ADDED", i, 100000000000+int64(i))
	}
	w.frames <- largeFrame(t, "BOOKMARK", -1, 100000001000)
	<-r.Synced()
	heap := heapOf(1 << 18)
	version := int64(100000001000)
	runtime.GC()
	start := time.Now()
	runtime.GC()
	marking := time.Since(start)
	hold = 2*marking + 200*time.Millisecond
	for range 3 {
		collected := make(chan struct{})
		var over atomic.Bool
		go func() { runtime.GC(); close(collected) }()
		time.Sleep(marking / 4) // the stacks are scanned, the heap is not
		go func() {
			for !over.Load() { // without a call, so without a point to preempt it
			}
		}()
		end := time.Now().Add(hold)
		time.AfterFunc(hold, func() { over.Store(true) })
		slowest := time.Duration(0)
		for time.Now().Before(end) {
			version++
			frame := largeFrame(t, "MODIFIED", int(version%100), version)
			start := time.Now()
			w.frames <- frame
			<-copied.updated
			slowest = max(slowest, time.Since(start))
			time.Sleep(2 * time.Millisecond)
		}
		<-collected
		t.Logf("marking takes %v, slowest event %v", marking, slowest)
		if worst == 0 || slowest < worst {
			worst = slowest
		}
	}
	runtime.KeepAlive(heap)
	cancel()
	require.NoError(t, <-ended)
	return worst, hold
}

// largeFrame is an event of a pod that is large enough to be compared with its last state.
func largeFrame(t *testing.T, kind string, i int, version int64) []byte {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(version)}}
	if i < 0 {
		pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	} else {
		pod.Name, pod.Namespace, pod.UID = fmt.Sprintf("pod-%04d", i), "shop", types.UID(fmt.Sprintf("0b0c1d2e-0000-4000-8000-00000000%04d", i))
		pod.Annotations = map[string]string{"note": strings.Repeat(fmt.Sprintf("own %d, ", i), 200)}
		pod.Spec = corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "web", Image: "registry.example/web:1.2.3"}}}
	}
	info, _ := apiruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), apiruntime.ContentTypeProtobuf)
	raw, err := apiruntime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), pod)
	require.NoError(t, err)
	event := &metav1.WatchEvent{Type: kind, Object: apiruntime.RawExtension{Raw: raw}}
	data, err := event.Marshal()
	require.NoError(t, err)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
}
