package status_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/status"
	"github.com/tributary-go/tributary/store"
)

// situation is a server behind a door, and two copies of its pods: a reflector and the source of an
// agent. The page shows both.
type situation struct {
	t         *testing.T
	pods      *listwatchtest.Collection[*corev1.Pod]
	door      *door
	reflector *reflector.Reflector[*corev1.Pod]
	held      *store.Indexer[*corev1.Pod]
	sources   *sources.Sources
	page      *status.Handler
	log       lines
	removed   atomic.Int32 // pods that the agent was told to remove
	ctx       context.Context
	stop      func()
	ended     sync.WaitGroup
}

// newSituation has ten pods, and runs nothing.
func newSituation(t *testing.T, options []reflector.Option) *situation {
	api := listwatchtest.NewServer(t)
	w := &situation{t: t, pods: listwatchtest.Serve(api, listwatchtest.Pods()), held: store.NewIndexer[*corev1.Pod](), page: new(status.Handler)}
	w.create(0, 10)
	config := api.Config()
	w.door = &door{server: config.Transport}
	config.Transport = w.door
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	log := logr.New(funcr.New(w.log.add, funcr.Options{}).GetSink())
	options = append([]reflector.Option{reflector.WithLogger(log)}, options...)
	ofNode := listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", "node-1"))
	w.reflector = reflector.New(listwatch.FromClient[corev1.Pod](client, "pods", ofNode), w.held, options...)
	w.sources = sources.New("node-1", sources.WithLogger(logr.Discard()), sources.APIServer(client, options...))
	w.page.Track("pods", w.reflector)
	w.page.Track("node-1", w.sources)
	ctx, cancel := context.WithCancel(t.Context())
	w.ctx, w.stop = ctx, func() { cancel(); w.ended.Wait() }
	return w
}

// start calls Run, and drops its errors: that is the program which the verdict must warn.
func (w *situation) start() {
	w.ended.Go(func() { _ = w.reflector.Run(w.ctx) })
	w.ended.Go(func() { _ = w.sources.Run(w.ctx) })
	w.ended.Go(func() {
		for u := range w.sources.Updates() {
			if u.Op == sources.Remove {
				w.removed.Add(int32(len(u.Pods)))
			}
		}
	})
}

// sync starts the copies, and waits until they are synced.
func (w *situation) sync() {
	w.start()
	<-w.reflector.Synced()
	<-w.sources.Synced()
	time.Sleep(10 * time.Second)
}

func (w *situation) create(from, to int) {
	for i := from; i < to; i++ {
		w.pods.Create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i)},
			Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
		})
	}
}

// write changes a pod every five seconds.
func (w *situation) write(lasting time.Duration) {
	for end := time.Now().Add(lasting); time.Now().Before(end); time.Sleep(5 * time.Second) {
		pod, err := w.pods.Origin().Get("default", "p0")
		require.NoError(w.t, err)
		pod = pod.DeepCopy()
		pod.Labels = map[string]string{"at": fmt.Sprint(time.Now().Unix())}
		w.pods.Update(pod)
	}
}

// contact wants the server to be heard all the time.
func (w *situation) contact() {
	require.WithinDuration(w.t, time.Now(), w.reflector.Status().LastContact, 70*time.Second)
	require.WithinDuration(w.t, time.Now(), w.sources.Status()[0].LastContact, 70*time.Second)
}

// keepsAll wants nothing to be removed.
func (w *situation) keepsAll() {
	require.Equal(w.t, 10, w.held.Snapshot().Len())
	require.Len(w.t, w.sources.Merged(), 10)
	require.Zero(w.t, w.removed.Load())
}

// until waits for both copies.
func (w *situation) until(seen func(reflector.Status) bool) {
	w.t.Helper()
	for range 12000 {
		synctest.Wait()
		if seen(w.reflector.Status()) && seen(*w.sources.Status()[0].Reflector) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	require.Fail(w.t, "it did not come to that", "%s", w.reflector.Status())
}

// truth is what the server has.
func (w *situation) truth() (version string, pods []*corev1.Pod) {
	now := w.pods.Origin().Snapshot()
	return now.ResourceVersion(), now.Sorted()
}

// damaged makes n pods of each LIST undecodable.
func (w *situation) damaged(n int) {
	w.door.rule.Store(&rule{answer: func(r *http.Request) *http.Response {
		switch query := r.URL.Query(); {
		case isWatchList(r):
			return refusal(r, http.StatusUnprocessableEntity)
		case query.Get("watch") != "" || isProbe(query):
			return nil
		}
		version, pods := w.truth()
		text := listOf(version, pods, 0)
		return answerOf(r, http.StatusOK, strings.Replace(text, `"spec":{"containers":[`, `"spec":{"containers":["`+"damaged"+`",`, n))
	}})
}

// lists ends the watches with a 410, and answers each LIST but a second one, at the latest version,
// which hangs if the first one was answered with pods.
func (w *situation) lists(answer func() (version string, pods []*corev1.Pod)) {
	w.door.rule.Store(&rule{answer: func(r *http.Request) *http.Response {
		version, pods := answer()
		switch query := r.URL.Query(); {
		case isWatchList(r):
			return refusal(r, http.StatusUnprocessableEntity)
		case query.Get("watch") != "":
			return refusal(r, http.StatusGone)
		case query.Get("limit") == "500" && len(pods) > 0:
			<-r.Context().Done()
			return nil
		}
		return answerOf(r, http.StatusOK, listOf(version, pods, 0))
	}})
	w.door.cut()
}

// probes answers them with an edited pod, and waits until the copies know that they are wrong. The
// relist hangs.
func (w *situation) probes(edit func(*corev1.Pod)) {
	w.door.rule.Store(&rule{answer: func(r *http.Request) *http.Response {
		version, pods := w.truth()
		switch query := r.URL.Query(); {
		case isProbe(query):
			pod := pods[0].DeepCopy()
			edit(pod)
			return answerOf(r, http.StatusOK, listOf(version, []*corev1.Pod{pod}, len(pods)-1))
		case query.Get("watch") == "" || isWatchList(r):
			<-r.Context().Done()
		}
		return nil
	}})
	w.until(func(s reflector.Status) bool { return s.Verdict(0).Err != nil })
}

// isProbe reports whether a LIST is of one object, or of a page to be compared.
func isProbe(query url.Values) bool {
	return query.Get("limit") == "1" || query.Get("limit") == "300"
}

// listOf is a PodList in JSON.
func listOf(version string, pods []*corev1.Pod, more int) string {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	list.ResourceVersion = version
	if more > 0 {
		n := int64(more)
		list.RemainingItemCount, list.Continue = &n, "more"
	}
	for _, pod := range pods {
		list.Items = append(list.Items, *pod)
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// door is the way to the server.
type door struct {
	server http.RoundTripper
	rule   atomic.Pointer[rule]
	pause  atomic.Int64 // before each piece of an answer

	mu   sync.Mutex // guards open
	open []*stream
}

// rule is what stands in for the server.
type rule struct {
	err    error
	answer func(*http.Request) *http.Response // nil: the server's own
}

func (d *door) RoundTrip(r *http.Request) (*http.Response, error) {
	if rule := d.rule.Load(); rule != nil {
		if rule.err != nil {
			return nil, rule.err
		}
		if answer := rule.answer(r); answer != nil {
			return answer, nil
		}
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
	}
	response, err := d.server.RoundTrip(r)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		s := &stream{ReadCloser: response.Body, door: d}
		d.open, response.Body = append(d.open, s), s
	}
	return response, err
}

// stream is the body of an answer of the server.
type stream struct {
	io.ReadCloser
	door *door
	cut  atomic.Bool
}

func (s *stream) Read(p []byte) (int, error) {
	if pause := s.door.pause.Load(); pause > 0 {
		time.Sleep(time.Duration(pause))
	}
	n, err := s.ReadCloser.Read(p)
	if err != nil && s.cut.Load() {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// cut cuts all connections.
func (d *door) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.open {
		s.cut.Store(true)
		s.Close()
	}
	d.open = nil
}

// away takes the server away.
func (d *door) away() {
	d.rule.Store(&rule{err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}})
	d.cut()
}

// refuse answers each request with an error, also in place of the open watches.
func (d *door) refuse(code int) {
	d.rule.Store(&rule{answer: func(r *http.Request) *http.Response { return refusal(r, code) }})
	d.cut()
}

// cutOff refuses what etcd must answer.
func (d *door) cutOff() {
	d.rule.Store(&rule{answer: func(r *http.Request) *http.Response {
		if r.URL.Query().Get("resourceVersion") == "" {
			return refusal(r, http.StatusGatewayTimeout)
		}
		return nil
	}})
}

// withoutBookmarks is a server that knows neither bookmarks nor watch lists.
func (d *door) withoutBookmarks() {
	d.rule.Store(&rule{answer: func(r *http.Request) *http.Response {
		if isWatchList(r) {
			return refusal(r, http.StatusUnprocessableEntity)
		}
		query := r.URL.Query()
		query.Del("allowWatchBookmarks")
		r.URL.RawQuery = query.Encode()
		return nil
	}})
}

func isWatchList(r *http.Request) bool { return r.URL.Query().Get("sendInitialEvents") != "" }

func refusal(r *http.Request, code int) *http.Response {
	return answerOf(r, code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"refused","code":%d}`, code))
}

func answerOf(r *http.Request, code int, body string) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprint(code, " ", http.StatusText(code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body)), ContentLength: int64(len(body)),
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) add(prefix, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintln(&l.text, prefix, args)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
