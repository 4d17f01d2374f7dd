package browser

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/status"
)

// patience is longer than anything here takes.
const patience = time.Minute

// program is a program with a page: an informer with two handlers, the pod sources of a node, and a
// watch cache that a reflector fills. Its API server can be killed and started again.
type program struct {
	t       *testing.T
	api     *apiserver.Server
	pods    *collection.Collection[*corev1.Pod]
	nodes   *collection.Collection[*corev1.Node]
	address string
	server  *http.Server
	cancel  context.CancelFunc
	running sync.WaitGroup
	web     *httptest.Server // of the page
	page    string           // its URL
	stuck   chan struct{}    // its end frees a handler that is told of a label
}

func startProgram(t *testing.T) *program {
	api, err := apiserver.NewServer()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{
		t: t, api: api, address: "127.0.0.1:0", cancel: cancel, stuck: make(chan struct{}),
		pods: apiserver.Serve(api, builtin.Pods()), nodes: apiserver.Serve(api, builtin.Of[*corev1.Node]()),
	}
	p.start()
	for _, name := range []string{"web-0", "web-1", "dns", "ingress"} {
		p.create(name)
	}
	_, err = p.nodes.Create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	require.NoError(t, err)

	handler := &status.Handler{Title: "node-agent", Verify: true, Differences: true}
	run := func(run func(context.Context) error) {
		p.running.Go(func() { _ = run(ctx) })
	}
	client := p.client()
	pods := informer.New(listwatch.FromClient[corev1.Pod](client, "pods"))
	_, err = pods.AddHandler(func(informer.Event[*corev1.Pod]) {}, informer.WithName("log-tailer"))
	require.NoError(t, err)
	_, err = pods.AddHandler(func(e informer.Event[*corev1.Pod]) {
		if e.New != nil && e.New.Labels["tier"] != "" {
			<-p.stuck
		}
	}, informer.WithName("flow-exporter"))
	require.NoError(t, err)
	handler.Track("pods", pods)
	run(pods.Run)

	manifests := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(manifests, "etcd.yaml"), []byte(
		"apiVersion: v1\nkind: Pod\nmetadata: {name: etcd, namespace: kube-system}\nspec: {containers: [{name: main, image: etcd}]}\n"), 0o600))
	node := sources.New("node-1", sources.APIServer(client), sources.File(manifests))
	handler.Track("node-1", node)
	run(node.Run)
	p.running.Go(func() {
		for range node.Updates() { // the agent
		}
	})

	cache, err := watchcache.NewCache(builtin.Of[*corev1.Node]().Kind)
	require.NoError(t, err)
	fill := reflector.New(listwatch.FromClient[corev1.Node](client, "nodes"), cache)
	relay, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.ServeCache(relay, cache, builtin.Of[*corev1.Node]().View, apiserver.FilledBy(fill))
	handler.Track("relay", relay)
	run(fill.Run)
	run(handler.Run)

	p.web = httptest.NewServer(handler)
	p.page = p.web.URL
	t.Cleanup(func() {
		p.endPage()
		p.free()
		p.cancel()
		p.running.Wait()
		relay.Close()
		p.kill()
		p.api.Close()
	})
	return p
}

func (p *program) client() rest.Interface {
	client, err := listwatch.NewRESTClient(&rest.Config{Host: "http://" + p.address}, corev1.SchemeGroupVersion)
	require.NoError(p.t, err)
	return client
}

func (p *program) create(name string) {
	_, err := p.pods.Create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10"}}},
	})
	require.NoError(p.t, err)
}

func (p *program) label(name, tier string) {
	pod, err := p.pods.Get("default", name)
	require.NoError(p.t, err)
	pod = pod.DeepCopy()
	pod.Labels["tier"] = tier
	_, err = p.pods.Update(pod)
	require.NoError(p.t, err)
}

// endPage ends the server of the page.
func (p *program) endPage() {
	p.web.CloseClientConnections()
	p.web.Close()
}

// free lets the handler go on.
func (p *program) free() {
	select {
	case <-p.stuck:
	default:
		close(p.stuck)
	}
}

func (p *program) start() {
	listener, err := net.Listen("tcp", p.address)
	require.NoError(p.t, err)
	p.address = listener.Addr().String()
	p.server = &http.Server{Handler: p.api, ReadHeaderTimeout: patience}
	go func(server *http.Server) { _ = server.Serve(listener) }(p.server)
}

func (p *program) kill() { require.NoError(p.t, p.server.Close()) }

// tab is a tab of a Chromium, and what it complained about.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex // guards what follows
	complaints []string   // of the console, and of the policy
	foreign    []string   // requests that leave the host
}

// open opens a status page, and waits until it is live: only then does the page show changes.
func open(t *testing.T, url string, width, height int64) *tab {
	b := openTab(t, url, width, height, nil)
	b.until("document.getElementById('live').innerText === 'live'")
	return b
}

// openTab opens a page in a Chromium of its own, for which names stand for addresses. The test is
// skipped if there is no Chromium.
func openTab(t *testing.T, url string, width, height int64, names map[string]string) *tab {
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Skip("no Chromium is installed (Debian: chromium)")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(int(width), int(height)),
	}
	for _, flag := range []string{
		"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
		"disable-component-update", "disable-sync", "hide-scrollbars",
	} {
		options = append(options, chromedp.Flag(flag, true))
	}
	rules := []string{}
	for name, address := range names {
		rules = append(rules, "MAP "+name+" "+address)
	}
	options = append(options, chromedp.Flag("host-resolver-rules", strings.Join(rules, ",")))
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "#")
	require.NoError(t, chromedp.Listen(ctx, b.hear(host)))
	b.run(command(log.Enable, cdp.Empty{}), command(network.Enable, network.EnableParams{}),
		chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	return b
}

// hear notes complaints, and requests to other hosts than the page's.
func (b *tab) hear(host string) func(any) {
	return func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch event := event.(type) {
		case *log.EventEntryAdded:
			b.complaints = append(b.complaints, event.Entry.Text+" "+event.Entry.URL)
		case *runtime.EventConsoleAPICalled:
			b.complaints = append(b.complaints, string(event.Type))
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, event.ExceptionDetails.Text)
		case *network.EventRequestWillBeSent:
			if address, ok := strings.CutPrefix(event.Request.URL, "http://"); !ok || !strings.HasPrefix(address, host) {
				b.foreign = append(b.foreign, event.Request.URL)
			}
		}
	}
}

// command is a command of the DevTools protocol as an action.
func command[P, R any](cmd cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, cmd, params)
		return chromedp.Void{}, err
	}
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// until waits until an expression is true in the page.
func (b *tab) until(expression string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(patience))); err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		require.NoError(b.t, err, "%s\n%s", expression, text)
	}
}

// value is the value of an expression.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return v
}
