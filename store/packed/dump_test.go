package packed_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
)

// hidden masks a text, so that the test itself has none of it in memory.
func hidden(text []byte) []byte {
	masked := bytes.Clone(text)
	for i := range masked {
		masked[i] ^= 0x55
	}
	return masked
}

// masked is a body whose bytes are in memory only where the reader has put them. It stays open.
type masked struct {
	bytes []byte
	at    int
	more  chan []byte
	ctx   context.Context
}

func (m *masked) Read(into []byte) (int, error) {
	for m.at == len(m.bytes) {
		select {
		case more, ok := <-m.more:
			if !ok {
				return 0, io.EOF
			}
			m.bytes, m.at = more, 0
		case <-m.ctx.Done():
			return 0, m.ctx.Err()
		}
	}
	n := 0
	for ; n < len(into) && m.at < len(m.bytes); n, m.at = n+1, m.at+1 {
		into[n] = m.bytes[m.at] ^ 0x55
	}
	return n, nil
}

func (m *masked) Close() error { return nil }

type maskedServer struct{ frames chan []byte }

func (s maskedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("watch") == "" {
		return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody}, nil
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: &masked{more: s.frames, ctx: r.Context()}}, nil
}

// secretOf is an event's Secret; a bookmark's has a version alone.
func secretOf(version string, value []byte) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	if value == nil {
		secret.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		return secret
	}
	secret.Namespace, secret.Name, secret.UID = "ns", "a", "uid"
	secret.Data = map[string][]byte{"password": value}
	return secret
}

// protobufFrame is an event of a Secret, masked.
func protobufFrame(t *testing.T, event, version string, value []byte) []byte {
	message, err := secretOf(version, value).Marshal()
	require.NoError(t, err)
	envelope, err := (&k8sruntime.Unknown{TypeMeta: k8sruntime.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Raw: message}).Marshal()
	require.NoError(t, err)
	e := &metav1.WatchEvent{Type: event, Object: k8sruntime.RawExtension{Raw: append([]byte("k8s\x00"), envelope...)}}
	data, err := e.Marshal()
	require.NoError(t, err)
	return hidden(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
}

// jsonFrame is the same in JSON, with the value as it is.
func jsonFrame(t *testing.T, event, version string, value []byte) []byte {
	secret := secretOf(version, value)
	tree := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": secret.ObjectMeta}
	if value != nil {
		tree["data"] = map[string]string{"password": string(value)}
	}
	data, err := json.Marshal(map[string]any{"type": event, "object": tree})
	require.NoError(t, err)
	return hidden(data)
}

// heapHas reports whether a masked text is in the process's living memory.
func heapHas(t *testing.T, text []byte) bool {
	for range 3 { // pools keep what they have for two collections
		runtime.GC()
	}
	path := filepath.Join(t.TempDir(), "heap")
	file, err := os.Create(path)
	require.NoError(t, err)
	debug.WriteHeapDump(file.Fd())
	require.NoError(t, file.Close())
	dump, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	found := bytes.Contains(hidden(dump), text)
	clear(dump)
	return found
}

// TestNoDumpHasADeletedSecret: after its deletion, the heap has nothing of a Secret's value, while
// the watch goes on.
func TestNoDumpHasADeletedSecret(t *testing.T) {
	t.Run("protobuf", func(t *testing.T) {
		frames, client := maskedClient(t)
		testNoDump(t, frames, protobufFrame, listwatch.FromClient[corev1.Secret](client, "secrets"), packed.New[corev1.Secret]())
	})
	t.Run("JSON", func(t *testing.T) {
		frames, client := maskedClient(t)
		testNoDump(t, frames, jsonFrame, listwatch.FromClient[unstructured.Unstructured](client, "secrets"), packed.New[unstructured.Unstructured]())
	})
}

func maskedClient(t *testing.T) (frames chan []byte, client rest.Interface) {
	frames = make(chan []byte, 8)
	config := &rest.Config{Host: "http://server.example", Transport: maskedServer{frames}}
	client, err := listwatch.NewRESTClient(config, schema.GroupVersion{Version: "v1"})
	require.NoError(t, err)
	return frames, client
}

func testNoDump[T store.Object](t *testing.T, frames chan []byte, frame func(t *testing.T, event, version string, value []byte) []byte,
	source *listwatch.ListWatch[T], secrets *packed.Store[T],
) {
	value := hidden([]byte("the password of a database, long enough"))
	r := reflector.New(source.Encoded(), secrets.Encoded())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	defer func() { stop(); require.NoError(t, <-ended) }()

	large := bytes.Repeat(value, 40)
	frames <- append(frame(t, "ADDED", "3", hidden(large)), frame(t, "BOOKMARK", "3", nil)...)
	require.NoError(t, r.WaitSynced(t.Context()))
	require.True(t, heapHas(t, value), "it is at rest")

	frames <- append(frame(t, "MODIFIED", "4", hidden(large)), frame(t, "DELETED", "5", hidden(large))...)
	require.Eventually(t, func() bool { return secrets.ResourceVersion() == "5" }, 10*time.Second, time.Millisecond)
	require.Zero(t, secrets.Snapshot().Len())
	require.False(t, heapHas(t, value), "it is deleted")
}
