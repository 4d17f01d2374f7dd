package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/status"
)

// copies is a program with many copies, each of which has an event a second. The first ones are
// sick.
type copies struct {
	n     int
	sick  atomic.Int64
	began time.Time
}

// name is that of a copy. Some are longer than a row has room for.
func (c *copies) name(i int) string {
	if i%10 == 0 {
		return fmt.Sprintf("cluster-%04d/secrets-of-all-tenants-and-regions", i)
	}
	return fmt.Sprintf("cluster-%04d/pods", i)
}

func (c *copies) Samples(string) iter.Seq[metrics.Sample] {
	now := time.Now()
	events := int(now.Sub(c.began).Seconds())
	return func(yield func(metrics.Sample) bool) {
		for i := range c.n {
			s := informer.Status{Objects: 100 + i + events, Status: reflector.Status{Phase: reflector.Watching, Synced: true, ResourceVersion: "5", LastContact: now, LastEvent: now, ProvenAt: now, Events: events * (1 + i%3)}}
			if i < int(c.sick.Load()) {
				s.Err, s.Class, s.Since, s.RetryAt = causeOf(i), reflector.Unreachable, c.began, now.Add(2*time.Second)
				if i%3 == 0 {
					s.Class = reflector.Forbidden
				}
			}
			for sample := range s.Samples(c.name(i)) {
				if !yield(sample) {
					return
				}
			}
		}
	}
}

// causeOf is a refused right, or a server that is away.
func causeOf(i int) error {
	if i%3 == 0 {
		return fmt.Errorf("watch secrets: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "",
			errors.New(`User "system:serviceaccount:fleet:controller" cannot list resource "secrets" in API group "" at the cluster scope`)))
	}
	return errors.New(`watch pods: Get "https://10.0.0.1:6443/api/v1/pods": dial tcp 10.0.0.1:6443: connect: connection refused`)
}

// Causes tells each of the sick ones.
func (c *copies) Causes(string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for i := range int(c.sick.Load()) {
			if !yield(c.name(i), causeOf(i)) {
				return
			}
		}
	}
}

// Follow has a change of each copy in each second.
func (c *copies) Follow(string) func() iter.Seq[metrics.Change] {
	return func() iter.Seq[metrics.Change] {
		return func(yield func(metrics.Change) bool) {
			for i := range c.n {
				if !yield(metrics.Change{Copy: c.name(i), Key: fmt.Sprintf("default/web-%04d-5d9c7b8f4-x2x9z", i), Old: 1, New: 2}) {
					return
				}
			}
		}
	}
}

// counted is a listener that counts the bytes that are sent.
type counted struct {
	net.Listener
	bytes atomic.Int64
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	return countedConn{conn, &c.bytes}, err
}

type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c countedConn) Write(p []byte) (int, error) {
	c.bytes.Add(int64(len(p)))
	return c.Conn.Write(p)
}

// startCopies serves the page of a thousand copies.
func startCopies(t *testing.T, sick int) (c *copies, url string, sent *atomic.Int64) {
	c = &copies{n: 1000, began: time.Now().Add(-time.Minute)}
	c.sick.Store(int64(sick))
	page := &status.Handler{Title: "fleet-controller"}
	page.Track("", c)
	web := httptest.NewUnstartedServer(page)
	network := &counted{Listener: web.Listener}
	web.Listener = network
	web.Start()
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return c, web.URL, &network.bytes
}

// TestAThousandCopies: in ten seconds a viewer is sent 200 kB at most, and no task of the browser
// takes 50 ms of its processor, however many copies are sick. The page is never long.
func TestAThousandCopies(t *testing.T) {
	for _, sick := range []int{0, 3, 100, 1000} {
		t.Run(fmt.Sprint(sick), func(t *testing.T) {
			_, url, sent := startCopies(t, sick)
			b := openTab(t, "about:blank", desktop, desktopHeight, nil)
			tasks := b.trace()
			b.run(chromedp.Navigate(url))
			b.until("document.getElementById('live').innerText === 'live'")
			b.until("performance.now() > 10000") // the measured time
			bytes, slowest := sent.Load(), tasks()
			t.Logf("%d sick: %d kB; the slowest task took %v of the processor, the longest %v", sick, bytes/1000, slowest.cpu, slowest.wall)
			require.Less(t, bytes, int64(200_000))
			require.Less(t, slowest.cpu, 50*time.Millisecond)
			require.Positive(t, slowest.cpu)
			require.Less(t, value[int64](b, "document.documentElement.scrollHeight"), int64(2*desktopHeight))
			require.Equal(t, int64(min(sick, 100)), value[int64](b, "document.querySelectorAll('#copies tr').length"))
		})
	}
}

// names are those of the rows, as an expression.
const names = "[...document.querySelectorAll('#copies tr')].map((row) => row.dataset.name)"

// TestFindingACopyInAThousand: by the verdict, a chip, the filter, a row and a link, with the
// verdict in view all the time. The choice stays in the address, and back goes back.
func TestFindingACopyInAThousand(t *testing.T) {
	c, url, _ := startCopies(t, 3)
	b := open(t, url, desktop, desktopHeight)
	b.until("document.querySelector('#verdict').innerText.startsWith('3 of 1000 copies are not well: ')")
	require.Len(t, value[[]string](b, names), 3)
	require.Contains(t, value[string](b, "document.querySelector('#foot').innerText"), "997 copies synced")
	b.until("document.querySelectorAll('#tail li').length > 20")
	for _, scheme := range []string{"light", "dark"} {
		b.picture("many", scheme)
	}
	b.run(chromedp.EmulateViewport(phone, phoneHeight))
	b.picture("many", "phone")
	b.picture("many", "phone-dark")
	b.run(chromedp.EmulateViewport(desktop, desktopHeight))

	// The command of the advice is copied.
	const command = "kubectl create clusterrole list-watch-secrets --verb=list,watch --resource=secrets; " +
		"kubectl create clusterrolebinding list-watch-secrets-fleet-controller --clusterrole=list-watch-secrets --serviceaccount=fleet:controller"
	require.Equal(t, command, value[string](b, "document.querySelector('#panel .command code').innerText"))
	b.run(chromedp.Evaluate[chromedp.Void]("document.querySelector('button.copy').click()"))
	require.Equal(t, command, value[string](b, "getSelection().toString()"))
	b.until("getSelection().isCollapsed")

	click := func(expression string) { b.run(chromedp.Evaluate[chromedp.Void](expression + ".click()")) }
	click("document.querySelector('#verdict a:nth-of-type(2)')")
	b.until("document.querySelector('#panel h2').innerText === 'cluster-0001/pods' && document.activeElement.tagName === 'H2'")
	require.Equal(t, "#copy=cluster-0001%2Fpods", value[string](b, "location.hash"))
	click("document.querySelector('.chip.synced')")
	b.until(names + ".length === 100")
	click("document.querySelector('#foot a')")
	b.until(names + ".length === 200")
	b.run(chromedp.Evaluate[chromedp.Void]("document.querySelector('#list').scrollTop = 5000; scrollTo(0, 5000)"))
	require.True(t, value[bool](b, "(() => { const box = document.querySelector('#verdict').getBoundingClientRect(); return box.top >= 0 && box.bottom < 200; })()"))
	b.run(chromedp.Evaluate[chromedp.Void]("document.querySelector('.chip.synced').click()"))
	b.until(names + ".length === 3")

	b.run(chromedp.KeyEvent("/"))
	b.until("document.activeElement.tagName === 'INPUT'")
	b.run(chromedp.Evaluate[chromedp.Void]("document.activeElement.value = ''")) // DevTools types what was refused, too
	for _, key := range "0770" {
		b.run(chromedp.KeyEvent(string(key)))
	}
	b.until(names + ".join() === " + fmt.Sprintf("%q", c.name(770)))
	require.Equal(t, "INPUT", value[string](b, "document.activeElement.tagName"), "the focus stays")
	require.Equal(t, "#copy=cluster-0001%2Fpods&q=0770", value[string](b, "location.hash"))
	click("document.querySelector('#copies a')")
	b.until(fmt.Sprintf("document.querySelector('#panel h2').innerText === %q", c.name(770)))
	b.run(chromedp.Evaluate[chromedp.Void]("history.back()"))
	b.until("document.querySelector('#panel h2').innerText === 'cluster-0001/pods'")

	// A link from elsewhere, by hand or from a page without scripts.
	for _, link := range []string{"/#copy=cluster-0999/pods", "/?copy=cluster-0999%2Fpods"} {
		b.run(chromedp.Navigate(url + link))
		b.until("document.querySelector('#panel h2')?.innerText === 'cluster-0999/pods'")
		require.Len(t, value[[]string](b, names), 3)
	}
	b.run(chromedp.KeyEvent(kb.Escape))
	b.until("location.hash === '' && document.querySelector('#panel h2').innerText !== 'cluster-0999/pods'")
	c.sick.Store(0)
	b.until("document.querySelector('#verdict').innerText === 'All is well: 1000 copies synced' && document.querySelector('#panel').innerText === ''")
	c.sick.Store(1000)
	b.until("document.querySelector('#verdict').innerText.includes('and 997 more') && " + names + ".length === 100")
	b.isQuiet()
}

// TestWithoutScripts: the page shows the same, and its links and filter work.
func TestWithoutScripts(t *testing.T) {
	c, url, _ := startCopies(t, 3)
	b := openTab(t, url, desktop, desktopHeight, nil)
	b.run(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(url))
	until := func(expression string) { // each page is a context of its own
		t.Helper()
		require.Eventually(t, func() bool {
			is, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
			return err == nil && is
		}, patience, 20*time.Millisecond, expression)
	}
	until(names + ".length === 3 && document.querySelector('#panel h2') !== null")
	require.Contains(t, value[string](b, "document.querySelector('#filter').innerText"), "Without scripts this page stands still")
	b.run(chromedp.Navigate(value[string](b, "document.querySelector('#copies tr:nth-child(2) a').href")))
	until("document.querySelector('#panel h2')?.innerText === 'cluster-0001/pods'")
	b.run(chromedp.Navigate(value[string](b, `(() => { const form = document.querySelector("#filter");
		form.q.value = "0770"; return form.action.split("?")[0] + "?" + new URLSearchParams(new FormData(form)); })()`)))
	until(names + ".join() === " + fmt.Sprintf("%q", c.name(770)))
}

// slow has the longest times of a task.
type slow struct{ cpu, wall time.Duration }

// trace notes the tasks of the tab's main thread from now on. The function ends that.
func (b *tab) trace() (end func() slow) {
	type event struct {
		Name string `json:"name"`
		PID  int    `json:"pid"`
		TID  int    `json:"tid"`
		Dur  int64  `json:"dur"`
		TDur int64  `json:"tdur"`
		Args struct {
			Name string `json:"name"`
		} `json:"args"`
	}
	var events []event
	complete := make(chan struct{})
	require.NoError(b.t, chromedp.Listen(b.ctx, func(heard any) {
		switch heard := heard.(type) {
		case *tracing.EventDataCollected:
			for _, raw := range heard.Value {
				var e event
				if json.Unmarshal(raw, &e) == nil {
					events = append(events, e)
				}
			}
		case *tracing.EventTracingComplete:
			close(complete)
		}
	}))
	b.run(command(tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{
		IncludedCategories: []string{"toplevel", "disabled-by-default-devtools.timeline", "__metadata"},
	}}))
	return func() (longest slow) {
		b.run(command(tracing.End, cdp.Empty{}))
		<-complete
		type thread struct{ pid, tid int }
		mains := map[thread]bool{}
		for _, e := range events {
			if e.Name == "thread_name" && e.Args.Name == "CrRendererMain" {
				mains[thread{e.PID, e.TID}] = true
			}
		}
		for _, e := range events {
			if mains[thread{e.PID, e.TID}] && strings.HasSuffix(e.Name, "RunTask") {
				longest.cpu = max(longest.cpu, time.Duration(e.TDur)*time.Microsecond)
				longest.wall = max(longest.wall, time.Duration(e.Dur)*time.Microsecond)
			}
		}
		return longest
	}
}
