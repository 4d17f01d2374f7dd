package listwatch_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
)

// bothErrors returns the only error of a list and of a watch, for a server with a single answer.
func bothErrors(t *testing.T, client rest.Interface) []error {
	t.Helper()
	lw := listwatch.FromClient[corev1.Pod](client, "pods", listwatch.InNamespace("shop"))
	pods, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, pods)
	require.Len(t, errs, 1)
	require.ErrorContains(t, errs[0], "list pods in shop: ")
	events, watchErrs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
	require.Empty(t, events)
	require.Len(t, watchErrs, 1)
	require.ErrorContains(t, watchErrs[0], "watch pods in shop: ")
	return append(errs, watchErrs...)
}

// refusals are the Statuses that a reflector distinguishes, and how.
var refusals = map[string]struct {
	status *apierrors.StatusError
	is     func(error) bool
}{
	"403":      {apierrors.NewForbidden(corev1.Resource("pods"), "", fmt.Errorf("no")), apierrors.IsForbidden},
	"404":      {apierrors.NewNotFound(corev1.Resource("pods"), ""), apierrors.IsNotFound},
	"410":      {apierrors.NewResourceExpired("too old resource version: 1 (2)"), apierrors.IsResourceExpired},
	"410 gone": {&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonGone, Code: 410, Message: "too old"}}, apierrors.IsGone},
	"429": {apierrors.NewTooManyRequests("slow down", 3), func(err error) bool {
		seconds, ok := apierrors.SuggestsClientDelay(err)
		return ok && seconds == 3 && apierrors.IsTooManyRequests(err)
	}},
	"500": {apierrors.NewInternalError(fmt.Errorf("etcd")), apierrors.IsInternalError},
	"504": {tooLargeVersion(), func(err error) bool {
		return apierrors.IsTimeout(err) && apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
	}},
}

func tooLargeVersion() *apierrors.StatusError {
	err := apierrors.NewTimeoutError("Too large resource version: 9, current: 8", 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

func TestStatusOfARefusedRequest(t *testing.T) {
	for name, refusal := range refusals {
		for _, media := range encodings {
			t.Run(name+" "+media, func(t *testing.T) {
				config := serve(t, answer(int(refusal.status.ErrStatus.Code), media, encode(t, media, v1Version, &refusal.status.ErrStatus)))
				clients := []rest.Interface{clientset(t, config).CoreV1().RESTClient(), restClient(t, config, v1Version)}
				for _, client := range clients {
					for _, err := range bothErrors(t, client) {
						require.True(t, refusal.is(err), "%v", err)
						require.ErrorContains(t, err, refusal.status.ErrStatus.Message)
					}
				}
			})
		}
	}
}

func TestStatusInsideAStream(t *testing.T) {
	for name, refusal := range refusals {
		for _, media := range encodings {
			t.Run(name+" "+media, func(t *testing.T) {
				body := frames(t, media, v1Version,
					watch.Event{Type: watch.Added, Object: pod(0)},
					watch.Event{Type: watch.Error, Object: &refusal.status.ErrStatus},
					watch.Event{Type: watch.Added, Object: pod(1)})
				config := serve(t, answer(http.StatusOK, media, body))
				events, errs := readWatch(listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods").Watch(t.Context(), metav1.ListOptions{}))
				require.Len(t, events, 1, "an ERROR event is the last")
				require.Len(t, errs, 1)
				require.True(t, refusal.is(errs[0]), "%v", errs[0])
			})
		}
	}
}

func TestErrorEventWithoutAStatus(t *testing.T) {
	for _, body := range []string{
		`{"type":"ERROR","object":{}}`, `{"type":"ERROR","object":"hunter2"}`, `{"type":"ERROR"}`,
		`{"type":"ERROR","object":{"kind":"Pod","metadata":{"name":"hunter2"},"status":{"phase":"hunter2"}}}`,
	} {
		config := serve(t, answer(http.StatusOK, jsonType, []byte(body)))
		_, errs := readWatch(listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods").Watch(t.Context(), metav1.ListOptions{}))
		require.Len(t, errs, 1, body)
		require.ErrorContains(t, errs[0], "the server reported an error")
		require.NotContains(t, errs[0].Error(), "hunter2")
	}
}

// No error repeats a server's answer.
func TestErrorsDoNotQuoteTheAnswer(t *testing.T) {
	bodies := map[string]string{
		"HTML": "<html><body>hunter2</body></html>", "text": "hunter2", "short text": "no",
		"JSON string": `"hunter2"`, "JSON array": `["hunter2"]`, "JSON of something else": `{"password":"hunter2"}`,
		"a kind that is none": `{"kind":5,"x":"hunter2"}`, "broken JSON": `{"items":[{"metadata":{"name":"hunter2"`,
		"broken key": `{"hunter2`, "broken kind": `{"kind":"hunter2`, "frame-like": "\x00\x00\x00\x07hunter2",
		"protobuf-like": "k8s\x00hunter2hunter2",
	}
	for name, body := range bodies {
		for _, contentType := range []string{"text/html", "text/plain", jsonType, protobufType, "", "hunter2"} {
			for _, code := range []int{200, 400, 401, 403, 404, 406, 409, 415, 422, 429, 500, 503} {
				t.Run(fmt.Sprint(name, " ", contentType, " ", code), func(t *testing.T) {
					client := restClient(t, serve(t, answer(code, contentType, []byte(body))), v1Version)
					lw := listwatch.FromClient[corev1.Pod](client, "pods")
					_, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
					require.NotEmpty(t, errs)
					_, watchErrs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
					require.NotEmpty(t, watchErrs)
					for _, err := range append(errs, watchErrs...) {
						requireSilent(t, err)
						if code != http.StatusOK {
							require.Equal(t, int32(code), statusOf(t, err).ErrStatus.Code)
							require.ErrorContains(t, err, fmt.Sprint(code))
						}
					}
				})
			}
		}
	}
}

func statusOf(t *testing.T, err error) *apierrors.StatusError {
	t.Helper()
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	return status
}

// requireSilent checks the error and all errors that it wraps.
func requireSilent(t *testing.T, err error) {
	t.Helper()
	require.NotContains(t, err.Error(), "hunter2")
	require.NotContains(t, fmt.Sprintf("%+v", err), "hunter2")
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		require.NotContains(t, fmt.Sprintf("%+v", status.ErrStatus), "hunter2")
	}
}

func TestRetryAfterOfAnAnswerThatIsNoStatus(t *testing.T) {
	config := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		http.Error(w, "hunter2", http.StatusTooManyRequests)
	})
	for _, err := range bothErrors(t, restClient(t, config, v1Version)) {
		seconds, ok := apierrors.SuggestsClientDelay(err)
		require.True(t, ok)
		require.Equal(t, 7, seconds)
		require.True(t, apierrors.IsUnexpectedServerError(err))
		requireSilent(t, err)
	}
}

func TestErrorsDoNotQuoteWhatIsNotHTTP(t *testing.T) {
	for name, answer := range map[string]string{
		"no status line": "hunter2 is here\r\n\r\n",
		"bad code":       "HTTP/1.1 hunter2 hunter2\r\n\r\n",
		"bad header":     "HTTP/1.1 200 OK\r\nhunter2\r\n\r\n",
		"bad length":     "HTTP/1.1 200 OK\r\nContent-Length: hunter2\r\n\r\n",
		"bad encoding":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: hunter2\r\n\r\n",
		"bad redirect":   "HTTP/1.1 302 Found\r\nLocation: http://hunter2:hunter2/%zz\r\nContent-Length: 0\r\n\r\n",
		"bad chunk":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhunter2\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Read(make([]byte, 4096))
					_, _ = conn.Write([]byte(answer))
					_ = conn.Close()
				}
			}()
			defer func() { _ = listener.Close(); <-done }()
			for _, err := range bothErrors(t, restClient(t, &rest.Config{Host: listener.Addr().String(), QPS: -1}, v1Version)) {
				requireSilent(t, err)
			}
		})
	}
}

// A server redirects to an address with a token, where no server listens, or in a circle.
func TestErrorsDoNotShowWhereAServerRedirects(t *testing.T) {
	for name, to := range map[string]func(r *http.Request) string{
		"nobody is there": func(*http.Request) string { return "http://user:hunter2@127.0.0.1:1/pods?token=hunter2#hunter2" },
		"in a circle":     func(r *http.Request) string { return "http://user:hunter2@" + r.Host + "/pods?token=hunter2#hunter2" },
	} {
		t.Run(name, func(t *testing.T) {
			config := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to(r), http.StatusFound) })
			for _, err := range bothErrors(t, restClient(t, config, v1Version)) {
				requireSilent(t, err)
				require.ErrorContains(t, err, "127.0.0.1", "the host is named")
			}
		})
	}
}

func TestErrorsDoNotShowThePasswordInTheURL(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close()) // no server listens there
	for _, err := range bothErrors(t, restClient(t, &rest.Config{Host: "http://admin:hunter2@" + address, QPS: -1}, v1Version)) {
		requireSilent(t, err)
		require.ErrorContains(t, err, address)
	}
}

func TestErrorsDoNotQuoteValues(t *testing.T) {
	for name, item := range map[string]string{
		"string for number":      `{"spec":{"priority":"hunter2"}}`,
		"number for string":      `{"spec":{"nodeName":8150}}`,
		"string for object":      `{"spec":"hunter2"}`,
		"time":                   `{"metadata":{"creationTimestamp":"hunter2"}}`,
		"quantity":               `{"spec":{"containers":[{"resources":{"limits":{"cpu":"hunter2"}}}]}}`,
		"quantity's name":        `{"spec":{"containers":[{"resources":{"limits":{"hunter2":[]}}}]}}`,
		"port":                   `{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":["hunter2"]}}}]}}`,
		"map":                    `{"metadata":{"labels":{"hunter2":8150}}}`,
		"base64":                 `{"spec":{"volumes":[{"hunter2":1},8150]}}`,
		"syntax":                 `{"spec":{"nodeName":hunter2}}`,
		"escape":                 `{"spec":{"nodeName":"hunter2\x"}}`,
		"number with a fraction": `{"spec":{"priority":8150.5}}`,
	} {
		t.Run(name, func(t *testing.T) {
			list := `{"kind":"PodList","apiVersion":"v1","items":[` + item + `]}`
			event := `{"type":"ADDED","object":` + strings.Replace(item, "{", `{"kind":"Pod","apiVersion":"v1",`, 1) + `}`
			lw := listwatch.FromClient[corev1.Pod](restClient(t, serve(t, answerBoth(jsonType, []byte(list), []byte(event))), v1Version), "pods")
			_, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			_, watchErrs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
			for _, errs := range [][]error{errs, watchErrs} {
				require.NotEmpty(t, errs)
				var unusable *listwatch.DecodeError
				require.ErrorAs(t, errs[0], &unusable)
				requireSilent(t, errs[0])
				require.NotContains(t, errs[0].Error(), "8150")
			}
		})
	}
}

// A Status may come with a 200, for example from a proxy: it is no empty collection, whatever T is.
func TestStatusInPlaceOfAList(t *testing.T) {
	failure := apierrors.NewInternalError(fmt.Errorf("no")).ErrStatus
	for _, media := range encodings {
		client := restClient(t, serve(t, answer(http.StatusOK, media, encode(t, media, v1Version, &failure))), v1Version)
		_, _, errs := readList(listwatch.FromClient[corev1.Pod](client, "pods").List(t.Context(), metav1.ListOptions{}))
		require.Len(t, errs, 1, media)
		_, _, errs = readList(listwatch.FromClient[metav1.PartialObjectMetadata](client, "pods").List(t.Context(), metav1.ListOptions{}))
		require.Len(t, errs, 1, media)
		_, _, errs = readList(listwatch.FromClient[unstructured.Unstructured](client, "pods").List(t.Context(), metav1.ListOptions{}))
		require.Len(t, errs, 1, media)
	}
}

func TestNewRESTClientNamesTheGroupVersion(t *testing.T) {
	_, err := listwatch.NewRESTClient(&rest.Config{Host: "http://%zz"}, schema.GroupVersion{Group: "apps", Version: "v1"})
	require.ErrorContains(t, err, "listwatch: client for apps/v1: ")
}

func TestRateLimiterErrorIsReturned(t *testing.T) {
	config, requests := recorder(t)
	config.QPS, config.Burst = 0.001, 1
	lw := listwatch.FromClient[corev1.Pod](restClient(t, config, v1Version), "pods")
	_, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	_, _, errs = readList(lw.List(ctx, metav1.ListOptions{}))
	require.Len(t, errs, 1)
	require.Len(t, requests, 1)
}
