package reflector_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// BenchmarkEvent takes one MODIFIED event in protobuf, alone in the reader's buffer, from the body
// of a response into an indexer of 1,000 pods. docs/design.md counts what it costs.
func BenchmarkEvent(b *testing.B) {
	w := &watchBody{frames: make(chan []byte)}
	client, err := listwatch.NewRESTClient(&rest.Config{Host: "http://api.example", QPS: -1, Transport: w}, corev1.SchemeGroupVersion)
	require.NoError(b, err)
	copied := &updates{Indexer: store.NewIndexer[*corev1.Pod](), updated: make(chan struct{})}
	r := reflector.New(listwatch.FromClient[corev1.Pod](client, "pods"), copied, reflector.WithLogger(logr.Discard()))
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()
	for i := range 1000 {
		w.frames <- frameOf(b, "ADDED", fmt.Sprintf("pod-%04d", i), fmt.Sprint(100000000000+int64(i)))
	}
	bookmark := frameOf(b, "BOOKMARK", "", "100000001000")
	w.frames <- bookmark
	<-r.Synced()
	frames := [][]byte{}
	for i := range 64 {
		frames = append(frames, frameOf(b, "MODIFIED", fmt.Sprintf("pod-%04d", i*7), "100000000000"))
	}
	version := int64(100000001000)
	digits := make([]byte, 12)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		version++
		for rest, at := version, len(digits)-1; at >= 0; at-- {
			digits[at] = byte('0' + rest%10)
			rest /= 10
		}
		frame := frames[i%len(frames)]
		copy(frame[bytes.Index(frame, []byte("\x32\x0c1"))+2:], digits)
		w.frames <- frame
		<-copied.updated
	}
	cancel()
	require.NoError(b, <-ended)
	require.Equal(b, fmt.Sprint(version), copied.Snapshot().ResourceVersion())
}

// updates says when it has been updated.
type updates struct {
	*store.Indexer[*corev1.Pod]
	updated chan struct{}
}

func (u *updates) Update(obj *corev1.Pod) error {
	err := u.Indexer.Update(obj)
	u.updated <- struct{}{}
	return err
}

// watchBody is the transport and the body of one watch. Each frame comes in a Read of its own.
type watchBody struct {
	frames chan []byte
	rest   []byte
	over   <-chan struct{}
}

func (w *watchBody) RoundTrip(request *http.Request) (*http.Response, error) {
	w.over = request.Context().Done()
	return &http.Response{StatusCode: http.StatusOK, Body: w, Header: http.Header{}, Request: request}, nil
}

func (w *watchBody) Read(into []byte) (int, error) {
	if len(w.rest) == 0 {
		select {
		case w.rest = <-w.frames:
		case <-w.over:
			return 0, io.EOF
		}
	}
	n := copy(into, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

func (w *watchBody) Close() error { return nil }

// frameOf is one event of a watch as an API server writes it.
func frameOf(b *testing.B, kind, name, version string) []byte {
	b.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	if name == "" {
		pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	} else {
		pod.Name, pod.Namespace, pod.UID = name, "shop", types.UID("0b0c1d2e-0000-4000-8000-0000"+name)
		pod.Labels = map[string]string{"app": "web", "tier": "front"}
		pod.CreationTimestamp = metav1.NewTime(time.Unix(1700000000, 0))
		pod.Spec = corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "web", Image: "registry.example/web:1.2.3"}}}
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.2.3"}
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	raw, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), pod)
	require.NoError(b, err)
	event := &metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}}
	data, err := event.Marshal()
	require.NoError(b, err)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
}
