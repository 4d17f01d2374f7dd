package status_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/status"
)

// patience is longer than anything here takes.
const patience = 30 * time.Second

// serve serves the page.
func serve(t *testing.T, page *status.Handler) (url string) {
	server := httptest.NewServer(page)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func get(t *testing.T, url, accept string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

// api is an API server with one pod, which can be ended and started again at its address.
type api struct {
	t       *testing.T
	handler *apiserver.Server
	pods    *collection.Collection[*corev1.Pod]
	address string
	server  *http.Server
}

func startAPI(t *testing.T) *api {
	handler, err := apiserver.NewServer()
	require.NoError(t, err)
	a := &api{t: t, handler: handler, pods: apiserver.Serve(handler, builtin.Pods()), address: "127.0.0.1:0"}
	a.create("web")
	a.start()
	t.Cleanup(func() {
		a.kill()
		handler.Close()
	})
	return a
}

func (a *api) create(name string) {
	_, err := a.pods.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "image"}}},
	})
	require.NoError(a.t, err)
}

func (a *api) start() {
	listener, err := net.Listen("tcp", a.address)
	require.NoError(a.t, err)
	a.address = listener.Addr().String()
	a.server = &http.Server{Handler: a.handler, ReadHeaderTimeout: patience}
	go func(server *http.Server) { _ = server.Serve(listener) }(a.server)
}

func (a *api) kill() { require.NoError(a.t, a.server.Close()) }

// inform runs an informer of the pods until the test ends.
func (a *api) inform() *informer.Informer[*corev1.Pod] {
	client, err := listwatch.NewRESTClient(&rest.Config{Host: "http://" + a.address}, corev1.SchemeGroupVersion)
	require.NoError(a.t, err)
	pods := informer.New(listwatch.FromClient[corev1.Pod](client, "pods"))
	ctx, cancel := context.WithCancel(a.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- pods.Run(ctx) }()
	a.t.Cleanup(func() {
		cancel()
		require.NoError(a.t, <-ended)
		http.DefaultClient.CloseIdleConnections()
	})
	return pods
}

// TestAPersonSeesTheStaleCopy: a viewer that follows the page sees the copy synced, failing with
// its cause once the server is gone, and well again, without asking anew.
func TestAPersonSeesTheStaleCopy(t *testing.T) {
	a := startAPI(t)
	page := status.Quickly(new(status.Handler))
	defer page.Track("pods", a.inform())()
	url := serve(t, page)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	frames := watch(ctx, t, url+"?copy=pods")
	var row, panel string
	until := func(state string, texts ...string) {
		t.Helper()
		frames.until(t, func(f frame) bool {
			row, panel = cmp.Or(f.Rows["pods"], row), cmp.Or(f.Parts["panel"], panel)
			for _, text := range texts {
				if !strings.Contains(panel, text) {
					return false
				}
			}
			return strings.Contains(row, `<tr class="`+state+`"`)
		})
	}
	until("synced", ">pods</h2>", " informer ", `Objects<dd>1<`)
	a.kill()
	until("failing", "unreachable", "connection refused", "Start the server;<wbr> check its address and DNS.", `Objects<dd>1<`)
	_, text := get(t, url, "*/*")
	require.Regexp(t, `(?m)^failing   pods +informer +1 `, text)
	require.Contains(t, text, "connection refused")
	require.Contains(t, text, "do:    Start the server")
	require.Regexp(t, `(?m)^          since: \S+ \(\d+s\) unreachable$`, text)
	a.start()
	a.create("more")
	until("synced", `Objects<dd>2<`)
}

// frame is what a viewer is sent.
type frame struct {
	Parts   map[string]string
	Order   []string
	Rows    map[string]string
	Changes []status.Change
	Left    int
}

// frames are those of one viewer.
type frames struct{ lines *bufio.Scanner }

// watch is a viewer that follows the page until ctx ends.
func watch(ctx context.Context, t *testing.T, url string) frames {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	request.Header.Set("Accept", "text/event-stream")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { response.Body.Close() })
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return frames{lines}
}

// until reads frames until seen.
func (f frames) until(t *testing.T, seen func(frame) bool) {
	t.Helper()
	for f.lines.Scan() {
		data, ok := strings.CutPrefix(f.lines.Text(), "data: ")
		if !ok {
			continue
		}
		var now frame
		require.NoError(t, json.Unmarshal([]byte(data), &now))
		if seen(now) {
			return
		}
	}
	require.Fail(t, "the page did not show it", "%v", f.lines.Err())
}

// TestForms: the same state for a browser, a program and a person with curl.
func TestForms(t *testing.T) {
	page := new(status.Handler)
	url := serve(t, page)
	page.Track("<b>pods</b>\x1b[2J", reflector.Status{Synced: true, ProvenAt: time.Now(), Events: 7})
	for accept, want := range map[string]string{
		"": "text/plain", "*/*": "text/plain", "text/html,application/xhtml+xml,*/*;q=0.8": "text/html", "application/json": "application/json",
	} {
		response, body := get(t, url, accept)
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, want+"; charset=utf-8", response.Header.Get("Content-Type"), accept)
		if want == "text/html" {
			require.NotContains(t, body, "<b>pods")
		} else {
			require.NotContains(t, body, "\x1b", "a terminal would obey")
		}
	}
	_, body := get(t, url, "application/json")
	var d status.Document
	require.NoError(t, json.Unmarshal([]byte(body), &d))
	require.Equal(t, status.Version, d.Version)
	require.NotZero(t, d.HeapBytes)
	require.Len(t, d.Copies, 1)
	require.Equal(t, status.Synced, d.Copies[0].State)
	require.Equal(t, 7, d.Copies[0].Events)
	response, _ := get(t, url, "image/png")
	require.Equal(t, http.StatusNotAcceptable, response.StatusCode)
	response, err := http.Post(url, "", nil)
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, response.StatusCode)
	http.DefaultClient.CloseIdleConnections()
}

// TestThePageLoadsNothing: its policy permits the script and the style that it has, and no other.
func TestThePageLoadsNothing(t *testing.T) {
	page := new(status.Handler)
	page.Track("pods", reflector.Status{Synced: true})
	response, body := get(t, serve(t, page), "text/html")
	policy := response.Header.Get("Content-Security-Policy")
	require.True(t, strings.HasPrefix(policy, "default-src 'none'; "))
	require.NotContains(t, policy, "unsafe")
	for _, element := range []string{"script", "style"} {
		found := regexp.MustCompile("(?s)<"+element+">(.*?)</"+element+">").FindAllStringSubmatch(body, -1)
		require.Len(t, found, 1)
		sum := sha256.Sum256([]byte(found[0][1]))
		require.Contains(t, policy, element+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	require.NotRegexp(t, `(?i)\b(src|style|onclick)=|<link|<iframe|@import|url\(`, body)
	http.DefaultClient.CloseIdleConnections()
}

// TestBounds: a thousand copies, twenty readers of each, a hundred viewers.
func TestBounds(t *testing.T) {
	page := new(status.Handler)
	many := reporter(func(yield func(metrics.Sample) bool) {
		for i := range 1500 {
			name := fmt.Sprintf("pods-%04d", i)
			one := informer.Status{Status: reflector.Status{Synced: true}}
			if i == 1499 {
				one.Err, one.Class = io.EOF, reflector.Disconnected
				for k := range 30 {
					one.Handlers = append(one.Handlers, informer.HandlerStatus{Name: fmt.Sprint("h", k), Lag: informer.Lag{Events: 1, Age: time.Duration(k) * time.Second}})
				}
			}
			for sample := range one.Samples(name) {
				if !yield(sample) {
					return
				}
			}
		}
	})
	page.Track("many", many)
	d := page.Document()
	require.Len(t, d.Copies, 1000)
	require.Equal(t, 500, d.Hidden)
	worst := d.Copies[0]
	require.Equal(t, "pods-1499", worst.Name, "the worst comes first")
	require.Len(t, worst.Readers, 20)
	require.Equal(t, "h29", worst.Readers[0].Name, "the reader that is furthest behind comes first")
	require.Equal(t, 10, worst.HiddenReaders)

	few := new(status.Handler)
	url := serve(t, few)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for i := range 101 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		require.NoError(t, err)
		request.Header.Set("Accept", "text/event-stream")
		response, err := transport.RoundTrip(request)
		require.NoError(t, err)
		defer response.Body.Close()
		want := http.StatusOK
		if i == 100 {
			want = http.StatusServiceUnavailable
		}
		require.Equal(t, want, response.StatusCode, i)
	}
}

// reporter is samples.
type reporter iter.Seq[metrics.Sample]

func (r reporter) Samples(string) iter.Seq[metrics.Sample] { return iter.Seq[metrics.Sample](r) }

// counter is a reflector whose events are counted.
type counter struct{ atomic.Int64 }

func (c *counter) Samples(name string) iter.Seq[metrics.Sample] {
	return reflector.Status{Synced: true, Events: int(c.Load())}.Samples(name)
}

// TestStates: each state from the numbers that mean it.
func TestStates(t *testing.T) {
	now := time.Now()
	well := reflector.Status{Phase: reflector.Watching, Synced: true, ResourceVersion: "5", LastContact: now, ProvenAt: now}
	elsewhere := reflector.Status{Synced: true, ProvenAt: now, ResourceVersion: "5", Err: io.EOF, Class: reflector.History, Contradiction: io.EOF}
	lagging := informer.Status{Status: well, Handlers: []informer.HandlerStatus{{Name: "h", Lag: informer.Lag{Events: 3, Age: time.Minute}}}}
	for _, row := range []struct {
		want   status.State
		of     metrics.Reporter
		causes []string
	}{
		{status.Syncing, reflector.Status{}, nil},
		{status.Stopped, reflector.Status{Phase: reflector.Idle, LastContact: now}, []string{"Run has not been called"}},
		{status.Stopped, reflector.Status{Phase: reflector.Stopped, Synced: true, ProvenAt: now, LastContact: now}, []string{"Run has ended"}},
		{status.Stopped, reflector.Status{Phase: reflector.Stopped, Synced: true, ProvenAt: now, Err: io.EOF, Class: reflector.Ended}, []string{"EOF"}},
		{status.Synced, well, nil},
		{status.Restored, reflector.Status{Phase: reflector.Watching, Synced: true, LastContact: now}, []string{"the state is of unknown age: no consistent answer of the server has proven it yet"}},
		{status.Failing, reflector.Status{Synced: true, ProvenAt: now, Err: io.EOF, Class: reflector.Disconnected}, []string{"EOF"}},
		{status.Failing, reflector.Status{Err: io.EOF, Class: reflector.Disconnected}, []string{"EOF"}},
		{status.Failing, reflector.Status{Synced: true, ProvenAt: now, Listed: 20, Unusable: 1, Err: io.EOF, Class: reflector.Undecodable}, []string{"EOF"}},
		{status.Wrong, reflector.Status{Synced: true, ProvenAt: now, Listed: 20, Unusable: 2, Err: io.EOF, Class: reflector.Undecodable}, []string{"EOF"}},
		{status.Wrong, reflector.Status{Synced: true, ProvenAt: now, Err: io.EOF, Class: reflector.History, Contradiction: io.EOF}, []string{"EOF"}},
		{status.Wrong, reflector.Status{Synced: true, ProvenAt: now, Err: io.EOF, Class: reflector.Drift, Contradiction: io.EOF}, []string{"EOF"}},
		{status.Stale, reflector.Status{Synced: true, ProvenAt: now.Add(-4 * time.Minute), LastContact: now}, nil},
		{status.Stale, reflector.Status{Synced: true, ProvenAt: now.Add(-4 * time.Minute), ProbeErr: io.EOF}, []string{"the last probe: EOF"}},
		{status.Synced, reflector.Status{Synced: true, ProvenAt: now, LastContact: now.Add(-4 * time.Minute), ProbeErr: io.EOF}, nil},
		{status.Stale, reflector.Status{Synced: true, ProvenAt: now.Add(-4 * time.Minute), Err: io.EOF, Class: reflector.Unreachable}, []string{"EOF"}},
		{status.Late, lagging, nil},
		{status.Syncing, sources.Status{Source: "file"}, nil},
		{status.Stopped, sources.Status{Source: "file", Phase: reflector.Idle}, nil},
		{status.Stopped, sources.Status{Source: "file", Phase: reflector.Stopped, Seen: true}, nil},
		{status.Synced, sources.Status{Source: "api", Seen: true, Reflector: &well}, nil},
		{status.Wrong, sources.Status{Source: "api", Seen: true, Reflector: &elsewhere}, nil},
		{status.Synced, sources.Status{Source: "file", Seen: true}, nil},
		{status.Restored, sources.Status{Source: "api", Restored: true}, nil},
		{status.Stale, sources.Status{Source: "api", Seen: true, Report: sources.Report{StaleAfter: time.Second, LastContact: now.Add(-time.Hour)}}, nil},
		{status.Failing, sources.Status{Source: "api", Seen: true, Report: sources.Report{Problems: []error{io.EOF}}}, nil},
		{status.Late, sources.Status{Source: "api", Seen: true, Pending: 1, Lag: time.Minute}, nil},
	} {
		page := new(status.Handler)
		untrack := page.Track("node-1", row.of)
		d := page.Document()
		require.Len(t, d.Copies, 1)
		require.Equal(t, row.want, d.Copies[0].State, "%+v", row.of)
		require.Equal(t, row.causes, d.Copies[0].Causes)
		var text strings.Builder
		page.ServeHTTP(viewer{&text, http.Header{}}, httptest.NewRequest(http.MethodGet, "/", nil))
		require.Equal(t, row.want != status.Synced, strings.Contains(text.String(), "since: "))
		require.Equal(t, row.want == status.Late, strings.Contains(text.String(), "waits: "), text.String())
		untrack()
	}
}

// TestTheLastHour: Run counts the events of each minute, and the rate is that of the last look.
func TestTheLastHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events counter
		page := new(status.Handler)
		untrack := page.Track("pods", &events)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- page.Run(ctx) }()
		synctest.Wait()
		require.Error(t, page.Run(t.Context()), "a second one")
		for minute := range 70 {
			events.Add(int64(minute))
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		var html strings.Builder
		request := httptest.NewRequest(http.MethodGet, "/?copy=pods", nil)
		request.Header.Set("Accept", "text/html")
		page.ServeHTTP(viewer{&html, http.Header{}}, request)
		require.Contains(t, html.String(), `at most 69"><path d="M0,16V13.0h1V16M1,16V12.8h1V16`)
		hour := page.Document().Copies[0].Hour
		require.Len(t, hour, 60)
		require.Equal(t, 10, hour[0])
		require.Equal(t, 69, hour[59])
		events.Add(30)
		require.Zero(t, page.Document().Copies[0].EventsPerSecond, "the look is shared for a second")
		time.Sleep(10 * time.Second)
		require.Equal(t, 3.0, page.Document().Copies[0].EventsPerSecond)
		untrack()
		time.Sleep(time.Minute)
		require.Empty(t, page.Document().Copies)
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestSince: the page knows since when a copy is in its state, from the copy or by its own looks.
func TestSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		page := new(status.Handler)
		page.Track("told", reflector.Status{Synced: true, ProvenAt: began, Err: io.EOF, Class: reflector.Disconnected, Since: began.Add(-5 * time.Second)})
		page.Track("unproven", reflector.Status{Synced: true, ProvenAt: began, LastContact: began.Add(4 * time.Minute)})
		page.Track("node-1", sources.Status{Source: "file", Seen: true, Report: sources.Report{Problems: []error{io.EOF}}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- page.Run(ctx) }()
		time.Sleep(2 * time.Minute)
		rows := rowsOf(page.Document())
		require.WithinDuration(t, began.Add(-5*time.Second), rows["told"].Since, time.Millisecond)
		require.WithinDuration(t, began, rows["unproven"].Since, time.Millisecond)
		require.WithinDuration(t, began, rows["node-1/file"].Since, time.Millisecond)
		time.Sleep(2 * time.Minute)
		rows = rowsOf(page.Document())
		require.Equal(t, status.Stale, rows["unproven"].State)
		require.WithinDuration(t, began, rows["unproven"].Since, time.Millisecond, "when it was right for the last time")
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestStatesAreExplained: each state has the row in docs/freshness.md to which it links.
func TestStatesAreExplained(t *testing.T) {
	explained, err := os.ReadFile("../docs/freshness.md")
	require.NoError(t, err)
	for _, state := range []status.State{status.Wrong, status.Stopped, status.Stale, status.Failing, status.Restored, status.Syncing, status.Late, status.Synced} {
		require.Contains(t, string(explained), `<a id="state-`+string(state)+`"></a>`)
	}
}

// TestAdvice: each class with a remedy in docs/reference/classes.md has an advice on the page.
func TestAdvice(t *testing.T) {
	classes, err := os.ReadFile("../docs/reference/classes.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|.*\\| ([^|]+) \\|$").FindAllStringSubmatch(string(classes), -1)
	require.Greater(t, len(rows), 15)
	for _, row := range rows {
		page := new(status.Handler)
		page.Track("pods", reflector.Status{Err: io.EOF, Class: reflector.Class(row[1])})
		if strings.HasPrefix(row[2], "nothing") {
			continue
		}
		require.NotEmpty(t, page.Document().Copies[0].Advice, row[1])
	}
}

// TestAdviceNamesTheRight: an API server's refusal names the verb, the resource and the user; the
// advice says what to grant, and has the command. A hostile server adds no command of its own.
func TestAdviceNamesTheRight(t *testing.T) {
	refused := func(resource schema.GroupResource, text string) error {
		return fmt.Errorf("watch pods: %w", apierrors.NewForbidden(resource, "", errors.New(text)))
	}
	pods, deployments := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Group: "apps", Resource: "deployments"}
	const pair = "kubectl create clusterrole list-watch-pods --verb=list,watch --resource=pods; " +
		"kubectl create clusterrolebinding list-watch-pods-shop-web --clusterrole=list-watch-pods --serviceaccount=shop:web"
	const ofAlice = "kubectl -n shop create role %[1]s-deployments.apps --verb=%[2]s --resource=deployments.apps; " +
		"kubectl -n shop create rolebinding %[1]s-deployments.apps-alice --role=%[1]s-deployments.apps --user=alice"
	for _, row := range []struct {
		cause   error
		advice  string
		command string
	}{
		{refused(pods, `User "system:serviceaccount:shop:web" cannot list resource "pods" in API group "" at the cluster scope`),
			"Grant list and watch on pods in the whole cluster to the service account shop/web.", pair},
		{refused(deployments, `User "alice" cannot watch resource "deployments" in API group "apps" in the namespace "shop": RBAC: not found`),
			"Grant list and watch on deployments.apps in the namespace shop to the user alice.", fmt.Sprintf(ofAlice, "list-watch", "list,watch")},
		{refused(deployments, `User "alice" cannot get resource "deployments" in API group "apps" in the namespace "shop"`),
			"Grant get on deployments.apps in the namespace shop to the user alice.", fmt.Sprintf(ofAlice, "get", "get")},
		{refused(pods, `User "it's; rm -rf ~" cannot list resource "pods" in API group "" at the cluster scope`),
			"Grant list and watch on pods in the whole cluster to the user it's; rm -rf ~.",
			"kubectl create clusterrole list-watch-pods --verb=list,watch --resource=pods; kubectl create clusterrolebinding " +
				`list-watch-pods-it-s-rm-rf --clusterrole=list-watch-pods '--user=it'\''s; rm -rf ~'`},
		{refused(pods, `User "system:anonymous" cannot list resource "pods" in API group "" at the cluster scope`),
			"Give the client credentials: the server took it for system:anonymous.", ""},
		{apierrors.NewGenericServerResponse(http.StatusForbidden, "get", pods, "", "", 0, true),
			"The refusal has no Status, so it is probably that of a proxy before the API server: look there.", ""},
		{refused(pods, "by order of a webhook"), "Grant list and watch, or the right to read the file or socket.", ""},
	} {
		page := new(status.Handler)
		page.Track("pods", reflector.Status{Err: row.cause, Class: reflector.Classify(row.cause)})
		one := page.Document().Copies[0]
		require.Equal(t, []string{row.advice}, one.Advice)
		require.Equal(t, row.command, strings.Join(one.Commands, "\n"))
	}
}
