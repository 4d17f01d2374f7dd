package listwatch_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/internal/adapters"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// requireNamelessCost requires that, of three objects, only the nameless second one is missing.
func requireNamelessCost[T store.Object](t *testing.T, lw listwatch.ListerWatcher[T]) {
	t.Helper()
	listed, meta, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
	events, watchErrs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
	require.Len(t, listed, 2)
	require.Equal(t, "4711", meta.ResourceVersion, "the list is whole")
	require.Equal(t, []string{pod(0).Name, pod(2).Name}, []string{listed[0].GetName(), listed[1].GetName()})
	require.Len(t, events, 3, "the bookmark has no name, and needs none")
	require.Len(t, errs, 1)
	require.Len(t, watchErrs, 1)
	for _, err := range append(errs, watchErrs...) {
		var unusable *listwatch.DecodeError
		require.ErrorAs(t, err, &unusable)
		require.ErrorContains(t, err, "the object has no name")
		require.ErrorContains(t, err, "shop/", "where to look for it")
	}
}

// requireNamelessKept requires that the nameless second object is there.
func requireNamelessKept[T store.Object](t *testing.T, lw *listwatch.ListWatch[T]) {
	t.Helper()
	require.True(t, lw.KeepsNameless())
	for _, kept := range []listwatch.ListerWatcher[T]{
		lw, listwatch.Intercept(lw, nil, nil), listwatch.Project(lw, func(obj T) T { return obj }),
	} {
		require.True(t, adapters.KeepsNameless(kept))
		listed, _, errs := readList(kept.List(t.Context(), metav1.ListOptions{}))
		events, watchErrs := readWatch(kept.Watch(t.Context(), metav1.ListOptions{}))
		require.Empty(t, append(errs, watchErrs...))
		require.Len(t, listed, 3)
		require.Equal(t, "shop/", store.KeyOf(listed[1]))
		require.Len(t, events, 4)
		require.Equal(t, "shop/", store.KeyOf(events[1].Object))
	}
}

func namelessPods() (*corev1.PodList, []watch.Event) {
	list := podList(3)
	list.Items[1].Name = ""
	events := podEvents(3)
	events[1].Object.(*corev1.Pod).Name = ""
	return list, events
}

func TestAnObjectWithoutANameCostsItself(t *testing.T) {
	list, events := namelessPods()
	for _, media := range encodings {
		config := serve(t, answerBoth(media, encode(t, media, v1Version, list), frames(t, media, v1Version, events...)))
		client := restClient(t, config, v1Version)
		t.Run(media, func(t *testing.T) { requireNamelessCost(t, listwatch.FromClient[corev1.Pod](client, "pods")) })
		t.Run(media+" functions", func(t *testing.T) {
			pods := clientset(t, config).CoreV1().Pods("")
			requireNamelessCost(t, listwatch.FromFuncs[*corev1.Pod](pods.List, pods.Watch))
		})
		t.Run(media+" kept", func(t *testing.T) {
			requireNamelessKept(t, listwatch.FromClient[corev1.Pod](client, "pods", adapters.AsClientGo.(listwatch.FuncsOption)))
			pods := clientset(t, config).CoreV1().Pods("")
			requireNamelessKept(t, listwatch.FromFuncs[*corev1.Pod](pods.List, pods.Watch, adapters.AsClientGo.(listwatch.FuncsOption)))
		})
		if media != protobufType {
			t.Run(media+" unstructured", func(t *testing.T) {
				requireNamelessCost(t, listwatch.FromClient[unstructured.Unstructured](client, "pods"))
			})
		}
		t.Run(media+" to client-go", func(t *testing.T) {
			lw := cache.ToListerWatcherWithContext(listwatch.ToClientGo(listwatch.FromClient[corev1.Pod](client, "pods")))
			got, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, itemsOf[*corev1.Pod](t, got), 2)
			w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			defer w.Stop()
			var kinds []watch.EventType
			for event := range w.ResultChan() {
				kinds = append(kinds, event.Type)
			}
			require.Equal(t, []watch.EventType{watch.Added, watch.Deleted, watch.Bookmark}, kinds)
		})
	}
}

func TestALongStatusIsCut(t *testing.T) {
	const long = 10 << 20
	status := apierrors.NewResourceExpired(strings.Repeat("ü", long/2)).ErrStatus
	status.Details = &metav1.StatusDetails{Name: strings.Repeat("n", long), Causes: make([]metav1.StatusCause, 1000)}
	for i := range status.Details.Causes {
		status.Details.Causes[i].Type = metav1.CauseTypeResourceVersionTooLarge
	}
	status.Details.Causes[0].Message = strings.Repeat("m", long)
	short := func(t *testing.T, err error) {
		t.Helper()
		require.Less(t, len(err.Error()), 1<<10)
		var got apierrors.APIStatus
		require.ErrorAs(t, err, &got)
		kept := got.Status()
		require.Less(t, kept.Size(), 16<<10)
		require.True(t, apierrors.IsResourceExpired(err) || apierrors.IsGone(err), "what the caller branches on stays: %v", err)
	}
	for _, media := range encodings {
		t.Run("event "+media, func(t *testing.T) {
			body := frames(t, media, v1Version, watch.Event{Type: watch.Error, Object: &status})
			client := restClient(t, serve(t, answer(200, media, body)), v1Version)
			_, errs := readWatch(listwatch.FromClient[corev1.Pod](client, "pods").Watch(t.Context(), metav1.ListOptions{}))
			require.Len(t, errs, 1)
			short(t, errs[0])
			require.ErrorContains(t, errs[0], "ü... (10485760 bytes)")
			require.True(t, apierrors.HasStatusCause(errs[0], metav1.CauseTypeResourceVersionTooLarge))
		})
		t.Run("answer "+media, func(t *testing.T) {
			for _, size := range []int{20 << 10, long} { // within a body's bound, and beyond it
				refusal := apierrors.NewResourceExpired(strings.Repeat("m", size))
				client := restClient(t, serve(t, answer(410, media, encode(t, media, v1Version, &refusal.ErrStatus))), v1Version)
				for _, err := range bothErrors(t, client) {
					short(t, err)
				}
			}
		})
	}
	t.Run("functions", func(t *testing.T) {
		stream := watch.NewFakeWithChanSize(1, false)
		stream.Error(&status)
		funcs := &podFuncs{err: &apierrors.StatusError{ErrStatus: status}, stream: stream}
		lw := listwatch.FromFuncs[*corev1.Pod](funcs.List, funcs.Watch)
		_, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
		short(t, errs[0])
		_, errs = readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
		short(t, errs[0])
		funcs.err = nil
		_, errs = readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
		short(t, errs[0])
	})
}

// counted counts the bytes read from bodies.
type counted struct {
	next http.RoundTripper
	read *atomic.Int64
}

func (c counted) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(response.Body, c), response.Body}
	}
	return response, err
}

func (c counted) Write(p []byte) (int, error) {
	c.read.Add(int64(len(p)))
	return len(p), nil
}

// TestAnErrorBodyIsNotReadForEver: the client must stop reading an error answer that never ends.
func TestAnErrorBodyIsNotReadForEver(t *testing.T) {
	for _, media := range []string{jsonType, protobufType, "text/html"} {
		t.Run(media, func(t *testing.T) {
			gone := make(chan struct{}, 2)
			config := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", media)
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(http.StatusInternalServerError)
				page := []byte(strings.Repeat("secret", 1000))
				for sent := 0; r.Context().Err() == nil && sent < 256<<20; sent += len(page) {
					if _, err := w.Write(page); err != nil {
						break
					}
				}
				gone <- struct{}{}
			})
			var read atomic.Int64
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, &read} })
			for _, client := range []rest.Interface{clientset(t, config).CoreV1().RESTClient(), restClient(t, config, v1Version)} {
				read.Store(0)
				for _, err := range bothErrors(t, client) {
					seconds, told := apierrors.SuggestsClientDelay(err)
					require.True(t, told && seconds == 7, "%v", err)
					require.ErrorContains(t, err, "the server answered 500")
					require.NotContains(t, err.Error(), "secret")
				}
				require.LessOrEqual(t, read.Load(), int64(2*64<<10), "of two answers")
				<-gone
				<-gone
			}
		})
	}
}

// TestTheClientIsLeftAlone: FromClient does not modify the caller's client.
func TestTheClientIsLeftAlone(t *testing.T) {
	client := restClient(t, &rest.Config{Host: "http://server.invalid"}, v1Version).(*rest.RESTClient)
	before := *client.Client
	listwatch.FromClient[corev1.Pod](client, "pods")
	require.Equal(t, before, *client.Client)
}
