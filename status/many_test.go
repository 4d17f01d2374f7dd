package status_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/status"
)

// fleet is many copies, each with an event a second. The first ones are sick.
type fleet struct {
	n, sick int
	began   time.Time
}

func (f fleet) Samples(string) iter.Seq[metrics.Sample] {
	now := time.Now()
	events := int(now.Sub(f.began).Seconds())
	return func(yield func(metrics.Sample) bool) {
		for i := range f.n {
			s := reflector.Status{Synced: true, LastContact: now, LastEvent: now, ProvenAt: now, Events: events * (1 + i%7)}
			if i < f.sick {
				s.Err, s.Class, s.Since, s.RetryAt = io.EOF, reflector.Unreachable, f.began, now.Add(2*time.Second)
			}
			for sample := range (informer.Status{Status: s, Objects: i + events}).Samples(f.name(i)) {
				if !yield(sample) {
					return
				}
			}
		}
	}
}

func (f fleet) name(i int) string { return fmt.Sprintf("cluster-%04d/persistentvolumes", i) }

// Follow has a change of each copy in each second.
func (f fleet) Follow(string) func() iter.Seq[metrics.Change] {
	return func() iter.Seq[metrics.Change] {
		return func(yield func(metrics.Change) bool) {
			for i := range f.n {
				if !yield(metrics.Change{Copy: f.name(i), Key: fmt.Sprintf("default/web-%04d-5d9c7b8f4-x2x9z", i), Old: 1, New: 2}) {
					return
				}
			}
		}
	}
}

// ask is the answer to a query, in a form.
func ask(t *testing.T, page http.Handler, query, accept string) string {
	t.Helper()
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "/"+query, nil)
	request.Header.Set("Accept", accept)
	page.ServeHTTP(answer, request)
	require.Equal(t, http.StatusOK, answer.Code)
	return answer.Body.String()
}

// rowNames are the names in the rows of a page.
func rowNames(html string) (names []string) {
	for _, found := range regexp.MustCompile(`<tr class="[a-z]+" data-name="([^"]*)"`).FindAllStringSubmatch(html, -1) {
		names = append(names, found[1])
	}
	return names
}

// TestHealthyCopiesAreFolded: of a thousand copies the page and the text show those that are not
// well, and the number of the others, which a query asks for.
func TestHealthyCopiesAreFolded(t *testing.T) {
	page := new(status.Handler)
	page.Track("", fleet{n: 1000, sick: 3, began: time.Now()})
	html := ask(t, page, "", "text/html")
	require.Equal(t, []string{"cluster-0000/persistentvolumes", "cluster-0001/persistentvolumes", "cluster-0002/persistentvolumes"}, rowNames(html))
	require.Contains(t, html, `997 copies synced: <a href="?state=synced">show them</a>`)
	require.Contains(t, html, `<a class="chip failing" href="?state=failing">3 failing</a>`)
	require.Regexp(t, `<h2 tabindex="-1">cluster-<wbr>0000/<wbr>persistentvolumes</h2>`, html, "the worst one is open")
	text := ask(t, page, "", "text/plain")
	require.Equal(t, 3, strings.Count(text, "cluster-"))
	require.Contains(t, text, "\n3 failing, 997 synced\n")
	require.Contains(t, text, "and 997 synced copies: ?state=synced lists them")

	html = ask(t, page, "?state=synced", "text/html")
	require.Len(t, rowNames(html), 100)
	require.Contains(t, html, `897 more copies: <a href="?rows=200&amp;state=synced">show the next ones</a>`)
	require.Contains(t, html, `<a class="chip synced" href="?" aria-current="true">997 synced</a>`)
	require.Len(t, rowNames(ask(t, page, "?state=synced&rows=200", "text/html")), 200)
	require.Equal(t, 997, strings.Count(ask(t, page, "?state=synced", "text/plain"), "\nsynced "))

	few := new(status.Handler)
	few.Track("", fleet{n: 20, began: time.Now()})
	require.Len(t, rowNames(ask(t, few, "", "text/html")), 20, "a few are shown")
}

// TestTheFilterFindsCopies: by all words of their names, kinds and classes, healthy ones too.
func TestTheFilterFindsCopies(t *testing.T) {
	page := new(status.Handler)
	page.Track("", fleet{n: 1000, sick: 3, began: time.Now()})
	for query, want := range map[string]int{
		"?q=cluster-077": 10, "?q=CLUSTER-0770+informer": 1, "?q=unreachable": 3, "?q=unreachable&state=synced": 0, "?q=elsewhere": 0,
	} {
		html := ask(t, page, query, "text/html")
		require.Len(t, rowNames(html), want, query)
		require.Equal(t, want == 0, strings.Contains(html, "No copy has that."), query)
		require.Equal(t, want, strings.Count(ask(t, page, query, "text/plain"), "cluster-"), query)
	}
}

// TestOneCopyHasALink: a query opens the panel of a copy, and says so if there is none.
func TestOneCopyHasALink(t *testing.T) {
	page := new(status.Handler)
	page.Track("", fleet{n: 1000, sick: 3, began: time.Now()})
	const query = "?copy=cluster-0770%2Fpersistentvolumes"
	html := ask(t, page, query, "text/html")
	require.Regexp(t, `<h2 tabindex="-1">cluster-<wbr>0770/<wbr>persistentvolumes</h2>`, html)
	require.Contains(t, html, `<a class="close" href="?">Close</a>`)
	text := ask(t, page, query, "text/plain")
	require.Equal(t, 1, strings.Count(text, "cluster-"))
	require.Contains(t, ask(t, page, "?copy=gone", "text/html"), "No copy has this name now.")
}

// TestThePageNamesItsProgram: with its version, and since when it runs.
func TestThePageNamesItsProgram(t *testing.T) {
	page := &status.Handler{Title: "node-agent"}
	d := page.Document()
	require.NotEmpty(t, d.ProgramVersion)
	require.WithinRange(t, d.StartedAt, time.Now().Add(-time.Hour), time.Now())
	require.Regexp(t, `>version \S+, up <time`, ask(t, page, "", "text/html"))
	require.Regexp(t, `node-agent \S+, up \d+`, ask(t, page, "", "text/plain"))
}

// TestNamesThatTurnTheText: a name cannot turn the direction of a line, break it or hide in it.
func TestNamesThatTurnTheText(t *testing.T) {
	const name = "pods\u202egpj.exe\u200b\n<b>"
	var changes followed
	page := status.Quickly(new(status.Handler))
	page.Track(name, &changes)
	page.Track(name+"\u2066", reflector.Status{Err: fmt.Errorf("\u202d\x1b[2J"), Class: reflector.Unreachable})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	frames := watch(ctx, t, serve(t, page))
	frames.until(t, func(f frame) bool { return f.Rows[name] != "" })
	changes.changes.Store(&[]metrics.Change{{Copy: name, Key: "a\u202eb", New: 1}})
	frames.until(t, func(f frame) bool {
		for _, c := range f.Changes {
			require.Equal(t, `pods\u202egpj.exe\u200b\n<b>`, c.Copy)
			require.Equal(t, `a\u202eb`, c.Key)
		}
		return len(f.Changes) == 1
	})
	shown := regexp.MustCompile(` (?:data-name|href|action)="[^"]*"`).ReplaceAllString(ask(t, page, "?copy=pods", "text/html"), "")
	for form, body := range map[string]string{"html": shown, "text": ask(t, page, "", "text/plain")} {
		require.NotRegexp(t, "[\u202d\u202e\u2066\u200b\x1b]", body, form)
		require.Contains(t, body, `pods\u202egpj.`, form)
	}
}

// weight counts bytes.
type weight struct{ atomic.Int64 }

func (w *weight) Write(p []byte) (int, error) {
	w.Add(int64(len(p)))
	return len(p), nil
}

// TestAViewerIsSentLittle: the page and ten seconds of a thousand busy copies are 200 kB at most,
// however many of them are sick, and if all are unfolded.
func TestAViewerIsSentLittle(t *testing.T) {
	for _, c := range []struct {
		sick  int
		query string
	}{{0, ""}, {3, ""}, {100, ""}, {1000, ""}, {3, "?state=synced"}, {3, "?q=cluster"}} {
		t.Run(fmt.Sprint(c.sick, c.query), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				page := new(status.Handler)
				page.Track("", fleet{n: 1000, sick: c.sick, began: time.Now()})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var sent weight
				loaded := len(ask(t, page, c.query, "text/html"))
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/"+c.query, nil)
					request.Header.Set("Accept", "text/event-stream")
					page.ServeHTTP(viewer{&sent, http.Header{}}, request)
				}()
				time.Sleep(10*time.Second + time.Millisecond)
				synctest.Wait()
				cancel()
				<-ended
				t.Logf("the page %d kB, the stream %d kB", loaded/1000, sent.Load()/1000)
				require.Less(t, loaded+int(sent.Load()), 200_000)
				require.Positive(t, sent.Load())
			})
		})
	}
}
