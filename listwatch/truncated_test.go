package listwatch_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
)

// cutter sends the first bytes of a body as a whole answer, as a careless proxy does: HTTP does not
// show the cut. It is a transport, since a server would get some ten thousand requests.
type cutter struct{ body []byte }

func (c *cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(c.body)), Request: r}, nil
}

func (c *cutter) client(t *testing.T) rest.Interface {
	t.Helper()
	return restClient(t, &rest.Config{Host: "http://cut.example", QPS: -1, Transport: c}, v1Version)
}

// small is a list whose bodies are short enough to be cut at every byte.
func small() *corev1.PodList {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "42"}}
	for _, name := range []string{"a", "b", "c"} {
		list.Items = append(list.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", ResourceVersion: "7", Labels: map[string]string{"odd": "}\\\"]"}},
			Spec:       corev1.PodSpec{NodeName: "node-1"},
		})
	}
	return list
}

func TestListCutAnywhereIsNoCleanEnd(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			body := bytes.TrimSpace(encode(t, media, v1Version, small()))
			complete := len(body)
			if media == protobufType {
				// After the list message come the envelope's empty fields 3 and 4, which no reader
				// needs.
				complete -= 4
				require.Equal(t, []byte{3<<3 | 2, 0, 4<<3 | 2, 0}, body[complete:])
			}
			server := &cutter{}
			lw := listwatch.FromClient[corev1.Pod](server.client(t), "pods")
			for n := range len(body) {
				server.body = body[:n]
				pods, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
				if n >= complete && (n-complete)%2 == 0 {
					require.Empty(t, errs, "cut at %d of %d", n, len(body))
					require.Len(t, pods, 3)
					continue
				}
				require.Len(t, errs, 1, "cut at %d of %d", n, len(body))
				require.ErrorIs(t, errs[0], io.ErrUnexpectedEOF, "cut at %d of %d", n, len(body))
			}
		})
	}
}

func TestUnstructuredListCutAnywhereIsNoCleanEnd(t *testing.T) {
	list := &unstructured.UnstructuredList{Object: map[string]any{"kind": "List", "apiVersion": "v1"}}
	for _, item := range small().Items {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&item)
		require.NoError(t, err)
		object["kind"], object["apiVersion"] = "Pod", "v1"
		list.Items = append(list.Items, unstructured.Unstructured{Object: object})
	}
	body, err := runtime.Encode(unstructured.UnstructuredJSONScheme, list)
	require.NoError(t, err)
	body = bytes.TrimSpace(body)
	server := &cutter{}
	lw := listwatch.FromClient[unstructured.Unstructured](server.client(t), "pods")
	for n := range len(body) {
		server.body = body[:n]
		_, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
		require.Len(t, errs, 1, "cut at %d of %d", n, len(body))
		require.ErrorIs(t, errs[0], io.ErrUnexpectedEOF, "cut at %d of %d", n, len(body))
	}
}

// An envelope without its message is not an empty list.
func TestEnvelopeWithoutAListIsNoEmptyList(t *testing.T) {
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	raw, err := envelope.Marshal()
	require.NoError(t, err)
	server := &cutter{body: append([]byte("k8s\x00"), raw...)}
	_, _, errs := readList(listwatch.FromClient[corev1.Pod](server.client(t), "pods").List(t.Context(), metav1.ListOptions{}))
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], io.ErrUnexpectedEOF)
}

func TestWatchCutBetweenFramesEndsAndInsideFails(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			var body []byte
			ends := map[int]int{0: 0} // the number of frames that end at a byte
			for i := range small().Items {
				body = append(body, frames(t, media, v1Version, watch.Event{Type: watch.Added, Object: &small().Items[i]})...)
				ends[len(body)] = i + 1
				if media == jsonType { // the line end after an event is not part of it
					ends[len(body)-1] = i + 1
				}
			}
			server := &cutter{}
			lw := listwatch.FromClient[corev1.Pod](server.client(t), "pods")
			whole := 0
			for n := range len(body) + 1 {
				server.body = body[:n]
				events, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
				if count, ok := ends[n]; ok {
					whole = count
					require.Empty(t, errs, "cut at %d of %d", n, len(body))
				} else {
					require.Len(t, errs, 1, "cut at %d of %d", n, len(body))
					require.ErrorIs(t, errs[0], io.ErrUnexpectedEOF, "cut at %d of %d", n, len(body))
				}
				require.Len(t, events, whole, "cut at %d of %d", n, len(body))
			}
		})
	}
}

// failing is a body that breaks with a network error.
type failing struct {
	io.Reader
	err error
}

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err == io.EOF {
		err = f.err
	}
	return n, err
}
func (f failing) Close() error { return nil }

type breaking struct {
	body []byte
	err  error
}

func (b *breaking) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: failing{bytes.NewReader(b.body), b.err}}, nil
}

func TestErrorOfTheNetworkIsReturnedWhereverItComes(t *testing.T) {
	reset := errors.New("connection reset by peer")
	for _, media := range encodings {
		list := bytes.TrimSpace(encode(t, media, v1Version, small()))
		stream := frames(t, media, v1Version, watch.Event{Type: watch.Added, Object: &small().Items[0]})
		server := &breaking{err: reset}
		lw := listwatch.FromClient[corev1.Pod](restClient(t, &rest.Config{Host: "http://cut.example", QPS: -1, Transport: server}, v1Version), "pods")
		for n := range len(list) + 1 {
			server.body = list[:n]
			_, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Len(t, errs, 1)
			require.ErrorIs(t, errs[0], reset, "%s list cut at %d of %d", media, n, len(list))
		}
		for n := range len(stream) + 1 {
			server.body = stream[:n]
			_, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
			require.Len(t, errs, 1)
			require.ErrorIs(t, errs[0], reset, "%s watch cut at %d of %d", media, n, len(stream))
		}
	}
}
