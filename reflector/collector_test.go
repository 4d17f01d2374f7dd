package reflector_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
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

	"github.com/tributary-go/tributary/internal/collector"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// TestNoEventWaitsForTheCollector: a weak pointer that is read on the road of an event would.
func TestNoEventWaitsForTheCollector(t *testing.T) {
	if !collector.Alone(t) {
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

func stall(t *testing.T, options ...listwatch.Option) (worst, hold time.Duration) {
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
	version := int64(100000001000)
	worst, hold = collector.Stall(t, func() {
		version++
		w.frames <- largeFrame(t, "MODIFIED", int(version%100), version)
		<-copied.updated
	})
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
