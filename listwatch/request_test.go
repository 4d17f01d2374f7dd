package listwatch_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/features"
	featuretesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/listwatch"
)

// recorder is a server that keeps its requests, and answers with nothing.
func recorder(t *testing.T) (*rest.Config, <-chan *http.Request) {
	t.Helper()
	requests := make(chan *http.Request, 16)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r
		answerBoth(jsonType, []byte(`{"items":null}`), nil)(w, r)
	}), requests
}

func TestRequestCarriesScopeSelectorsAndOptions(t *testing.T) {
	config, requests := recorder(t)
	lw := listwatch.FromClient[unstructured.Unstructured](restClient(t, config, schema.GroupVersion{Group: "example.com", Version: "v1"}), "widgets",
		listwatch.InNamespace("shop"),
		listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", "node-1")),
		listwatch.Labels(labels.SelectorFromSet(labels.Set{"app": "web"})))

	_, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{
		ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, Limit: 500, Continue: "more"}))
	require.Empty(t, errs)
	list := <-requests
	require.Equal(t, http.MethodGet, list.Method)
	require.Equal(t, "/apis/example.com/v1/namespaces/shop/widgets", list.URL.Path)
	require.Equal(t, url.Values{
		"fieldSelector": {"spec.nodeName=node-1"}, "labelSelector": {"app=web"}, "resourceVersion": {"7"},
		"resourceVersionMatch": {"NotOlderThan"}, "limit": {"500"}, "continue": {"more"},
	}, list.URL.Query())

	_, errs = readWatch(lw.Watch(t.Context(), metav1.ListOptions{
		ResourceVersion: "9", TimeoutSeconds: ptr.To[int64](300), AllowWatchBookmarks: true, SendInitialEvents: ptr.To(true)}))
	require.Empty(t, errs)
	require.Equal(t, url.Values{
		"fieldSelector": {"spec.nodeName=node-1"}, "labelSelector": {"app=web"}, "resourceVersion": {"9"}, "watch": {"true"},
		"timeoutSeconds": {"300"}, "allowWatchBookmarks": {"true"}, "sendInitialEvents": {"true"},
	}, (<-requests).URL.Query())
}

func TestRequestAcceptsWhatTheTypeCanBeReadFrom(t *testing.T) {
	const metaOf = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	const drop = ";drop=metadata.managedFields" // KEP-5958
	const metaListOf = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	for _, gate := range []features.Feature{features.ClientsAllowCBOR, features.ClientsPreferCBOR} {
		featuretesting.SetFeatureDuringTest(t, gate, true) // ignored, as is the client's setting
	}
	config, requests := recorder(t)
	config.AcceptContentTypes = "application/cbor"
	core := restClient(t, config, v1Version)
	drain := func(list, watch func()) (listAccept, watchAccept string) {
		list()
		listAccept = (<-requests).Header.Get("Accept")
		watch()
		return listAccept, (<-requests).Header.Get("Accept")
	}
	for name, row := range map[string]struct {
		list, watch func()
		accept      [2]string
	}{
		"typed": {
			func() {
				readList(listwatch.FromClient[corev1.Pod](core, "pods").List(t.Context(), metav1.ListOptions{}))
			},
			func() {
				readWatch(listwatch.FromClient[corev1.Pod](core, "pods").Watch(t.Context(), metav1.ListOptions{}))
			},
			[2]string{protobufType + "," + jsonType, protobufType + "," + jsonType},
		},
		"typed as JSON": {
			func() {
				readList(listwatch.FromClient[corev1.Pod](core, "pods", listwatch.WithJSON()).List(t.Context(), metav1.ListOptions{}))
			},
			func() {
				readWatch(listwatch.FromClient[corev1.Pod](core, "pods", listwatch.WithJSON()).Watch(t.Context(), metav1.ListOptions{}))
			},
			[2]string{jsonType, jsonType},
		},
		"unstructured": {
			func() {
				readList(listwatch.FromClient[unstructured.Unstructured](core, "pods").List(t.Context(), metav1.ListOptions{}))
			},
			func() {
				readWatch(listwatch.FromClient[unstructured.Unstructured](core, "pods").Watch(t.Context(), metav1.ListOptions{}))
			},
			[2]string{jsonType, jsonType},
		},
		"metadata": {
			func() {
				readList(listwatch.FromClient[metav1.PartialObjectMetadata](core, "pods").List(t.Context(), metav1.ListOptions{}))
			},
			func() {
				readWatch(listwatch.FromClient[metav1.PartialObjectMetadata](core, "pods").Watch(t.Context(), metav1.ListOptions{}))
			},
			[2]string{
				protobufType + metaListOf + "," + jsonType + metaListOf + "," + jsonType,
				protobufType + metaOf + "," + jsonType + metaOf + "," + jsonType,
			},
		},
		"typed without managed fields": {
			func() {
				readList(listwatch.FromClient[corev1.Pod](core, "pods", listwatch.DropManagedFields()).List(t.Context(), metav1.ListOptions{}))
			},
			func() {
				readWatch(listwatch.FromClient[corev1.Pod](core, "pods", listwatch.DropManagedFields()).Watch(t.Context(), metav1.ListOptions{}))
			},
			[2]string{protobufType + drop + "," + jsonType + drop + "," + jsonType, protobufType + drop + "," + jsonType + drop + "," + jsonType},
		},
		"metadata without managed fields": {
			func() {
				readList(listwatch.FromClient[metav1.PartialObjectMetadata](core, "pods", listwatch.DropManagedFields()).List(t.Context(), metav1.ListOptions{}))
			},
			func() {
				readWatch(listwatch.FromClient[metav1.PartialObjectMetadata](core, "pods", listwatch.DropManagedFields()).Watch(t.Context(), metav1.ListOptions{}))
			},
			[2]string{
				protobufType + metaListOf + drop + "," + jsonType + metaListOf + drop + "," + jsonType,
				protobufType + metaOf + drop + "," + jsonType + metaOf + drop + "," + jsonType,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			list, watch := drain(row.list, row.watch)
			require.Equal(t, row.accept, [2]string{list, watch})
		})
	}
}

func TestNothingIsSentBeforeIteration(t *testing.T) {
	config, requests := recorder(t)
	lw := listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods")
	list, events := lw.List(t.Context(), metav1.ListOptions{}), lw.Watch(t.Context(), metav1.ListOptions{})
	require.Equal(t, metav1.ListMeta{}, list.Meta())
	require.Empty(t, requests)
	_, _, _ = readList(list)
	require.Len(t, requests, 1)
	_, _ = readWatch(events)
	require.Len(t, requests, 2)
}

func TestRefusalIsNotRetried(t *testing.T) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			requests := make(chan struct{}, 16)
			config := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				requests <- struct{}{}
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(code)
			})
			lw := listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods")
			_, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Len(t, errs, 1)
			require.Len(t, requests, 1)
			_, errs = readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
			require.Len(t, errs, 1)
			require.Len(t, requests, 2)
		})
	}
}

// All lists share one connection: HTTP keeps a connection that was read to its end.
func TestListKeepsItsConnection(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			addresses := make(chan string, 5)
			body := encode(t, media, v1Version, podList(50))
			config := serve(t, func(w http.ResponseWriter, r *http.Request) {
				addresses <- r.RemoteAddr
				half := len(body) / 2
				_, _ = w.Write(body[:half])
				w.(http.Flusher).Flush() // chunked
				_, _ = w.Write(body[half:])
			})
			lw := listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods")
			first := ""
			for range 5 {
				pods, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
				require.Empty(t, errs)
				require.Len(t, pods, 50)
				address := <-addresses
				if first == "" {
					first = address
				}
				require.Equal(t, first, address)
			}
		})
	}
}

// dripping is a server that sends the first part of a body, and the rest when goOn allows it. gone
// is closed once the client has closed the connection.
func dripping(t *testing.T, first, rest []byte) (config *rest.Config, goOn chan<- struct{}, gone <-chan struct{}) {
	t.Helper()
	may, closed := make(chan struct{}), make(chan struct{})
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(first)
		w.(http.Flusher).Flush()
		select {
		case <-may:
			_, _ = w.Write(rest)
		case <-r.Context().Done():
			close(closed)
		}
	}), may, closed
}

func requireGone(t *testing.T, gone <-chan struct{}) {
	t.Helper()
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Fatal("the server still has the connection")
	}
}

func TestItemsComeWhileTheBodyIsBeingSent(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			body := encode(t, media, v1Version, podList(4))
			config, goOn, _ := dripping(t, body[:len(body)/2], body[len(body)/2:])
			lw := listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods")
			list, got := lw.List(t.Context(), metav1.ListOptions{}), 0
			for obj, err := range list.Items {
				require.NoError(t, err)
				require.Equal(t, pod(got).Name, obj.Name)
				if got == 0 {
					close(goOn)
				}
				got++
			}
			require.Equal(t, 4, got)
			require.Equal(t, "4711", list.Meta().ResourceVersion)
		})
	}
}

func TestLeavingTheLoopEndsTheRequest(t *testing.T) {
	for _, media := range encodings {
		list := encode(t, media, v1Version, podList(4))
		events := frames(t, media, v1Version, podEvents(1)...)
		t.Run("list "+media, func(t *testing.T) {
			config, _, gone := dripping(t, list[:len(list)/2], nil)
			for _, err := range listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods").List(t.Context(), metav1.ListOptions{}).Items {
				require.NoError(t, err)
				break
			}
			requireGone(t, gone)
		})
		t.Run("watch "+media, func(t *testing.T) {
			config, _, gone := dripping(t, events, nil)
			for event, err := range listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods").Watch(t.Context(), metav1.ListOptions{}) {
				require.NoError(t, err)
				require.Equal(t, watch.Added, event.Type)
				break
			}
			requireGone(t, gone)
		})
	}
}

func TestContextEndsTheRequest(t *testing.T) {
	for _, media := range encodings {
		list := encode(t, media, v1Version, podList(4))
		events := frames(t, media, v1Version, podEvents(1)...)
		t.Run("list "+media, func(t *testing.T) {
			config, _, gone := dripping(t, list[:len(list)/2], nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var last error
			for _, err := range listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods").List(ctx, metav1.ListOptions{}).Items {
				cancel()
				last = err
			}
			require.ErrorIs(t, last, context.Canceled)
			requireGone(t, gone)
		})
		t.Run("watch "+media, func(t *testing.T) {
			config, _, gone := dripping(t, events, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var last error
			for _, err := range listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods").Watch(ctx, metav1.ListOptions{}) {
				cancel()
				last = err
			}
			require.ErrorIs(t, last, context.Canceled)
			requireGone(t, gone)
		})
	}
}

func TestEndedContextSendsNothing(t *testing.T) {
	config, requests := recorder(t)
	lw := listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, errs := readList(lw.List(ctx, metav1.ListOptions{}))
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], context.Canceled)
	_, errs = readWatch(lw.Watch(ctx, metav1.ListOptions{}))
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], context.Canceled)
	require.Empty(t, requests)
}

func TestWithoutWatchListIsDeclared(t *testing.T) {
	config, _ := recorder(t)
	client := restClient(t, config, v1Version)
	require.False(t, listwatch.FromClient[corev1.Pod](client, "pods").IsWatchListSemanticsUnSupported())
	require.True(t, listwatch.FromClient[corev1.Pod](client, "pods", listwatch.WithoutWatchList()).IsWatchListSemanticsUnSupported())
}

func TestRequestEndsInTheMiddleOfWhatWasReadAhead(t *testing.T) {
	body := frames(t, protobufType, v1Version, podEvents(100)...)
	ended := make(chan struct{}, 2)
	cs := clientset(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
		answer(http.StatusOK, protobufType, body)(w, r)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		ended <- struct{}{}
	}))
	lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods")

	seen := 0
	for event, err := range lw.Watch(t.Context(), metav1.ListOptions{}) {
		require.NoError(t, err)
		require.Equal(t, pod(seen).Name, event.Object.Name)
		if seen++; seen == 10 {
			break
		}
	}
	<-ended

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen = 0
	var last error
	for _, err := range lw.Watch(ctx, metav1.ListOptions{}) {
		require.NoError(t, last, "nothing comes behind the error")
		if last = err; err == nil {
			seen++
		}
		if seen == 10 {
			cancel()
		}
	}
	require.ErrorIs(t, last, context.Canceled)
	<-ended
}
