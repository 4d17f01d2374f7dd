package status_test

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/refs"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/status"
	"github.com/tributary-go/tributary/store"
)

var update = flag.Bool("update", false, "write the table of verdicts into docs/freshness.md")

// verdictCase is one situation of a copy, and what is said of it everywhere.
type verdictCase struct {
	name    string             // of the row in docs/freshness.md
	options []reflector.Option // of both copies
	before  func(*situation)   // while nothing runs; the server has ten pods of the node
	then    func(*situation)   // once the copies are synced, unless before has seen to that
	run     func(*situation)   // nil: Run is called, and the copies are synced
	class   reflector.Class    // of the verdict, whose bound is three minutes
	failing reflector.Class    // of the last request or object; OK if that was well
	safe    bool               // to prune
	state   status.State       // on the page
	quiet   bool               // no line of the log is about the verdict
}

// verdictCases has each class of a verdict, and each situation in which contact was once taken for
// freshness.
var verdictCases = []verdictCase{
	{
		name: "all is well", safe: true, state: status.Synced,
		then: func(*situation) { time.Sleep(10 * time.Minute) },
	}, {
		name: "a quiet collection, on a server without bookmarks", safe: true, state: status.Synced,
		before: func(w *situation) { w.door.withoutBookmarks() },
		then:   func(*situation) { time.Sleep(20 * time.Minute) },
	}, {
		name: "the server is away for a minute", failing: reflector.Unreachable, state: status.Failing,
		then: func(w *situation) { w.door.away(); time.Sleep(time.Minute) },
	}, {
		name: "one object of forty cannot be decoded", failing: reflector.Undecodable, state: status.Failing,
		before: func(w *situation) { w.create(10, 40); w.damaged(1) },
		then:   func(*situation) { time.Sleep(2 * time.Minute) },
	}, {
		name: "an empty list of version 0, from a cache between client and server", failing: reflector.WentBack, state: status.Failing,
		then: func(w *situation) {
			w.lists(func() (string, []*corev1.Pod) { return "0", nil })
			w.until(func(s reflector.Status) bool { return s.Class == reflector.WentBack })
			time.Sleep(20 * time.Second)
			w.keepsAll()
		},
	}, {
		name: "a list of fewer than half, at a version that is not newer", failing: reflector.Shrunk, state: status.Failing,
		then: func(w *situation) {
			w.lists(func() (string, []*corev1.Pod) { version, pods := w.truth(); return version, pods[:1] })
			w.until(func(s reflector.Status) bool { return s.Class == reflector.Shrunk })
			w.keepsAll()
		},
	}, {
		name: "`Run` has not been called", class: reflector.NotRun, state: status.Stopped, quiet: true,
		run: func(*situation) {},
	}, {
		name: "`Run` has ended with its context", class: reflector.Ended, state: status.Stopped, quiet: true,
		then: func(w *situation) { w.stop() },
	}, {
		name: "`Run` has ended with an error", class: reflector.Ended, failing: reflector.Forbidden, state: status.Stopped,
		options: []reflector.Option{reflector.WithFinalErrors()},
		then:    func(w *situation) { w.door.refuse(http.StatusForbidden); time.Sleep(time.Minute) },
	}, {
		name: "the first list is refused", class: reflector.NotSynced, failing: reflector.Forbidden, state: status.Failing, quiet: true,
		before: func(w *situation) { w.door.refuse(http.StatusForbidden) },
		run:    func(w *situation) { w.start(); time.Sleep(5 * time.Minute) },
	}, {
		name: "a first state from the cache of a server that is cut off from etcd", class: reflector.MayBeOld, state: status.Restored,
		options: []reflector.Option{reflector.WithCachedFirstList()},
		before:  func(w *situation) { w.door.cutOff() },
		then:    func(*situation) { time.Sleep(2 * time.Minute) },
	}, {
		name: "the server is away for five minutes", class: reflector.Stale, failing: reflector.Unreachable, state: status.Stale,
		then: func(w *situation) { w.door.away(); time.Sleep(5 * time.Minute) },
	}, {
		name: "the server is cut off from etcd, and its bookmarks go on", class: reflector.Stale, state: status.Stale,
		then: func(w *situation) { w.door.cutOff(); time.Sleep(6 * time.Minute); w.contact() },
	}, {
		name: "a link, or a proxy, that is slower than the writes", class: reflector.Stale, state: status.Stale,
		then: func(w *situation) { w.door.pause.Store(int64(20 * time.Second)); w.write(8 * time.Minute); w.contact() },
	}, {
		name: "another cluster answers, or a restored one", class: reflector.History, state: status.Wrong,
		then: func(w *situation) { w.probes(func(pod *corev1.Pod) { pod.UID = "another" }) },
	}, {
		name: "other content than the server's, at the same version", class: reflector.Drift, state: status.Wrong,
		then: func(w *situation) { w.probes(func(pod *corev1.Pod) { pod.Labels = map[string]string{"a": "default"} }) },
	}, {
		name: "more than one object in twenty cannot be decoded", class: reflector.Undecodable, failing: reflector.Undecodable, state: status.Wrong,
		before: func(w *situation) { w.damaged(3) },
		then:   func(*situation) { time.Sleep(2 * time.Minute) },
	},
}

// verdictBound is the one of the table.
const verdictBound = 3 * time.Minute

// right reports whether the copy is ready.
func (c *verdictCase) right() bool { return c.class == "" }

// TestOneVerdict: whatever the situation, Status, Ready, the readiness handler, SafeToPrune, the
// metrics, the log and the page say the same of a copy.
func TestOneVerdict(t *testing.T) {
	for _, c := range verdictCases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSituation(t, c.options)
				defer w.stop()
				if c.before != nil {
					c.before(w)
				}
				if c.run == nil {
					c.run = (*situation).sync
				}
				c.run(w)
				if c.then != nil {
					c.then(w)
				}
				synctest.Wait()
				w.check(c)
			})
		})
	}
}

// check compares all seven.
func (w *situation) check(c verdictCase) {
	t, s, source := w.t, w.reflector.Status(), w.sources.Status()[0]
	// Status and its class.
	class := cmp.Or(c.class, reflector.OK)
	v, ofSource := s.Verdict(verdictBound), source.Verdict(verdictBound)
	require.Equal(t, class, v.Class, "%v: %s", v.Err, s)
	require.Equal(t, class, ofSource.Class, "%v", ofSource.Err)
	if c.failing != "" || c.right() {
		require.Equal(t, cmp.Or(c.failing, reflector.OK), s.Class, "%v", s.Err)
	}
	// Ready.
	for _, err := range []error{v.Err, ofSource.Err, w.reflector.Ready(verdictBound), w.sources.Ready(verdictBound)} {
		require.Equal(t, c.right(), err == nil, "%v", err)
	}
	// The readiness handler.
	answer := httptest.NewRecorder()
	reflector.ReadyHandler(verdictBound, w.reflector, w.sources).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	require.Equal(t, c.right(), answer.Code == http.StatusOK, answer.Body.String())
	require.Equal(t, !c.right(), strings.Contains(answer.Body.String(), "copy 1: ") && strings.Contains(answer.Body.String(), "copy 2: "))
	// What an agent may stop.
	require.Equal(t, c.safe, w.sources.SafeToPrune(sources.APISource))
	// The metrics. The age of a proof is a number of its own.
	notRight := ""
	if class != reflector.OK && class != reflector.Stale {
		notRight = string(class)
	}
	require.Equal(t, notRight, metricClass(w.reflector, "tributary_reflector_not_right"))
	require.Equal(t, notRight, metricClass(w.sources, "tributary_sources_not_right"))
	// The log.
	logged := w.log.String()
	require.Equal(t, !c.right() && !c.quiet, strings.Contains(logged, "The copy is not right"), logged)
	if !c.right() && !c.quiet {
		require.Equal(t, 2, strings.Count(logged, fmt.Sprintf(`"verdict"=%q`, class)), "once for each copy: %s", logged)
	}
	// The page.
	document := w.page.Document()
	require.Len(t, document.Copies, 2)
	for _, row := range document.Copies {
		require.Equal(t, c.state, row.State, "%+v", row)
		require.Equal(t, notRight, row.NotRight, row.Name)
		require.Equal(t, c.state == status.Synced, len(row.Classes) == 0, row.Name)
		require.Equal(t, c.state == status.Synced, len(row.Causes) == 0, row.Name)
		require.Equal(t, c.state == status.Synced, len(row.Advice) == 0, row.Name)
	}
}

// metricClass is the class of the one sample of a metric; empty if there is none.
func metricClass(r metrics.Reporter, metric string) (class string) {
	for sample := range r.Samples("copy") {
		if sample.Metric.Name == metric {
			class += sample.Labels[len(sample.Labels)-1]
		}
	}
	return class
}

// TestVerdictTable: docs/freshness.md has the table of the cases. -update writes it.
func TestVerdictTable(t *testing.T) {
	const path, begin, end = "../docs/freshness.md", "<!-- The verdicts, by go test ./status -update -->\n", "<!-- The end of the verdicts. -->\n"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(page), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	var table strings.Builder
	table.WriteString("| situation | verdict | ready | safe to prune | class of the failure beside it | page |\n|---|---|---|---|---|---|\n")
	says := map[bool]string{true: "yes", false: "no"}
	for _, c := range verdictCases {
		beside := ""
		if c.failing != "" && c.failing != c.class {
			beside = "`" + string(c.failing) + "`"
		}
		fmt.Fprintf(&table, "| %s | `%s` | %s | %s | %s | [%s](#state-%s) |\n",
			c.name, cmp.Or(c.class, reflector.OK), says[c.right()], says[c.safe], beside, c.state, c.state)
	}
	want := before + begin + table.String() + end + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run go test ./status -run TestVerdictTable -update")
}

// renamed reports the numbers of another reporter, with a class of verdicts that nothing knows.
type renamed struct{ of metrics.Reporter }

const brandNew = "brand_new"

func (r renamed) Samples(name string) iter.Seq[metrics.Sample] {
	return func(yield func(metrics.Sample) bool) {
		for sample := range r.of.Samples(name) {
			if strings.HasSuffix(sample.Metric.Name, "_not_right") {
				sample.Labels = slices.Clone(sample.Labels)
				sample.Labels[len(sample.Labels)-1] = brandNew
			}
			if !yield(sample) {
				return
			}
		}
	}
}

// TestAnUnknownClassIsFailing: a class that is added to the verdicts, and listed nowhere else, is
// not healthy on the page.
func TestAnUnknownClassIsFailing(t *testing.T) {
	require.Equal(t, reflector.StateFailing, reflector.Verdict{Class: brandNew}.State())
	unproven := reflector.Status{Phase: reflector.Watching, Synced: true}
	cache, err := watchcache.NewCache(watchcache.Pods())
	require.NoError(t, err)
	require.NoError(t, cache.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", ResourceVersion: "1"}}))
	relay, err := apiserver.NewServer()
	require.NoError(t, err)
	defer relay.Close()
	apiserver.ServeCache(relay, cache, builtin.Pods().View, apiserver.FilledBy(follower(unproven)))
	for kind, of := range map[string]metrics.Reporter{
		"reflector":   unproven,
		"informer":    informer.Status{Status: unproven},
		"source":      sources.Status{Source: "api", Seen: true, Reflector: &unproven},
		"references":  refs.Status{Phase: reflector.Watching, Synced: true, Names: 1, NotRight: map[reflector.Class]int{reflector.Forbidden: 1}},
		"watch cache": relay,
	} {
		page := new(status.Handler)
		page.Track("copy", renamed{of})
		d := page.Document()
		require.Len(t, d.Copies, 1, kind)
		require.Equal(t, status.Failing, d.Copies[0].State, kind)
		require.Equal(t, brandNew, d.Copies[0].NotRight, kind)
		require.Contains(t, d.Copies[0].Classes, brandNew, kind)
	}
}

// TestAHealthyWatchCacheIsProven: the page says of which moment a served cache is proven.
func TestAHealthyWatchCacheIsProven(t *testing.T) {
	cache, err := watchcache.NewCache(watchcache.Pods())
	require.NoError(t, err)
	require.NoError(t, cache.Replace(store.Items[*corev1.Pod](), store.At("1")))
	served, err := apiserver.NewServer()
	require.NoError(t, err)
	defer served.Close()
	at := time.Now().Add(-time.Minute)
	apiserver.ServeCache(served, cache, builtin.Pods().View,
		apiserver.FilledBy(follower{Phase: reflector.Watching, Synced: true, ProvenAt: at}))
	page := new(status.Handler)
	page.Track("serve", served)
	row := rowsOf(page.Document())["serve/pods"]
	require.Equal(t, status.Synced, row.State)
	require.WithinDuration(t, at, row.ProvenAt, time.Second)
}
