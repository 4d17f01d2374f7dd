package status_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/status"
)

// TestTheTailOfChanges: a viewer is told what is added, modified and deleted, by name, from the
// moment that it looks.
func TestTheTailOfChanges(t *testing.T) {
	a := startAPI(t)
	pods := a.inform()
	require.NoError(t, pods.WaitSynced(t.Context()))
	page := status.Quickly(new(status.Handler))
	defer page.Track("pods", pods)()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	frames := watch(ctx, t, serve(t, page))
	frames.until(t, func(f frame) bool {
		require.Empty(t, f.Changes, "what is there already is no change")
		return strings.Contains(f.Rows["pods"], `<tr class="synced"`)
	})
	var told []string
	until := func(want ...string) {
		t.Helper()
		frames.until(t, func(f frame) bool {
			for _, c := range f.Changes {
				require.False(t, c.At.IsZero())
				told = append(told, fmt.Sprint(c.Number, " ", c.Copy, " ", c.Op, " ", c.Key))
			}
			return len(told) >= len(want)
		})
		require.Equal(t, want, told)
	}
	a.create("more")
	until("1 pods added default/more")
	pod, err := a.pods.Get("default", "more")
	require.NoError(t, err)
	pod = pod.DeepCopy()
	pod.Labels = map[string]string{"secret": "value"}
	_, err = a.pods.Update(pod)
	require.NoError(t, err)
	until("1 pods added default/more", "2 pods modified default/more")
	_, err = a.pods.Remove("default", "more")
	require.NoError(t, err)
	until("1 pods added default/more", "2 pods modified default/more", "3 pods deleted default/more")
}

// followed is a copy with changes, which are counted when they are asked for.
type followed struct {
	follows, asked atomic.Int32
	changes        atomic.Pointer[[]metrics.Change]
}

func (f *followed) Samples(name string) iter.Seq[metrics.Sample] {
	return reflector.Status{Synced: true}.Samples(name)
}

func (f *followed) Follow(string) func() iter.Seq[metrics.Change] {
	f.follows.Add(1)
	return func() iter.Seq[metrics.Change] {
		f.asked.Add(1)
		return func(yield func(metrics.Change) bool) {
			if all := f.changes.Swap(nil); all != nil {
				for _, c := range *all {
					if !yield(c) {
						return
					}
				}
			}
		}
	}
}

// viewer follows a page in a bubble, without a network.
type viewer struct {
	io.Writer
	header http.Header
}

func (v viewer) Header() http.Header { return v.header }
func (v viewer) WriteHeader(int)     {}
func (v viewer) Flush()              {}

func look(ctx context.Context, page http.Handler, to io.Writer) {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	request.Header.Set("Accept", "text/event-stream")
	page.ServeHTTP(viewer{to, http.Header{}}, request)
}

// TestTheTailCostsNothingUnseen: the copies are asked for changes while somebody looks, once a
// second for all viewers, and by nobody else.
func TestTheTailCostsNothingUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pods followed
		page := new(status.Handler)
		page.Track("pods", &pods)
		for range 5 {
			page.Document()
			time.Sleep(time.Second)
		}
		require.Zero(t, pods.follows.Load())
		ctx, cancel := context.WithCancel(t.Context())
		for range 100 {
			go look(ctx, page, io.Discard)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		require.EqualValues(t, 1, pods.follows.Load())
		require.EqualValues(t, 11, pods.asked.Load(), "at the beginning, and each second")
		cancel()
		synctest.Wait()
		time.Sleep(time.Minute)
		require.EqualValues(t, 11, pods.asked.Load())
		ctx, cancel = context.WithCancel(t.Context())
		go look(ctx, page, io.Discard)
		synctest.Wait()
		require.EqualValues(t, 2, pods.follows.Load(), "the last viewer took what was kept")
		cancel()
		synctest.Wait()
	})
}

// TestTheTailIsBounded: of a burst a viewer is told the last changes, and how many are left out.
func TestTheTailIsBounded(t *testing.T) {
	var pods followed
	page := status.Quickly(new(status.Handler))
	page.Track("pods", &pods)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	frames := watch(ctx, t, serve(t, page))
	frames.until(t, func(f frame) bool { return f.Rows["pods"] != "" })
	var burst []metrics.Change
	for i := range 12_345 {
		burst = append(burst, metrics.Change{Copy: "pods", Key: fmt.Sprint(i), New: i})
	}
	pods.changes.Store(&burst)
	frames.until(t, func(f frame) bool {
		if len(f.Changes) == 0 {
			return false
		}
		require.Len(t, f.Changes, 30)
		require.Equal(t, 12_315, f.Left)
		require.Equal(t, "12344", f.Changes[29].Key)
		return true
	})
}

// TestDifference: with the option, a viewer gets the difference of a change. Without it, and of a
// secret, there is none.
func TestDifference(t *testing.T) {
	labelled := func(value string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "shop", "tier": value}}}
	}
	custom := func(kind, value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "data": map[string]any{"key": value}}}
	}
	for _, on := range []bool{true, false} {
		var pods followed
		page := status.Quickly(&status.Handler{Differences: on})
		page.Track("pods", &pods)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		url := serve(t, page)
		frames := watch(ctx, t, url)
		frames.until(t, func(f frame) bool { return f.Rows["pods"] != "" })
		pods.changes.Store(&[]metrics.Change{
			{Copy: "pods", Key: "a", Old: labelled("front"), New: labelled("back")},
			{Copy: "pods", Key: "a", New: labelled("back")},
			{Copy: "pods", Key: "b", Old: &corev1.Secret{Data: map[string][]byte{"key": []byte("hunter2")}}, New: &corev1.Secret{}},
			{Copy: "pods", Key: "c", Old: custom("Secret", "hunter2"), New: custom("Secret", "hunter3")},
			{Copy: "pods", Key: "d", Old: custom("ConfigMap", "x"), New: custom("ConfigMap", strings.Repeat("x", 70_000))},
		})
		frames.until(t, func(f frame) bool { return len(f.Changes) == 5 })
		for number, want := range map[string]struct {
			code int
			says string
		}{
			"1": {http.StatusOK, `"tier": "back"`},
			"2": {http.StatusUnprocessableEntity, "was added"},
			"3": {http.StatusUnprocessableEntity, "secrets"},
			"4": {http.StatusUnprocessableEntity, "secrets"},
			"5": {http.StatusUnprocessableEntity, "bytes"},
			"6": {http.StatusNotFound, "forgotten"},
			"x": {http.StatusNotFound, "forgotten"},
		} {
			response, body := get(t, url+"?difference="+number, "*/*")
			require.NotContains(t, body, "hunter")
			require.NotContains(t, body, "shop", "nothing but the difference")
			if !on {
				require.Equal(t, http.StatusForbidden, response.StatusCode)
				continue
			}
			require.Equal(t, want.code, response.StatusCode, number)
			require.Contains(t, body, want.says)
		}
		cancel()
	}
}

// TestWatchCachesOnThePage: a server's caches are rows, with their objects, watchers and what they
// keep; a cache whose follower fails says why.
func TestWatchCachesOnThePage(t *testing.T) {
	a := startAPI(t)
	page := new(status.Handler)
	page.Track("api", a.handler)
	cache, err := watchcache.NewCache(watchcache.Pods())
	require.NoError(t, err)
	page.Track("cache", cache)
	pods := a.inform() // a watcher
	require.NoError(t, pods.WaitSynced(t.Context()))
	a.create("more")
	rows := rowsOf(page.Document())
	require.Equal(t, status.Synced, rows["api/pods"].State)
	require.Equal(t, "watch cache", rows["api/pods"].Kind)
	require.Equal(t, 2, rows["api/pods"].Objects)
	require.Equal(t, 2, rows["api/pods"].Events)
	require.Equal(t, "watchers", rows["api/pods"].Readers[0].Name)
	require.Equal(t, 1, rows["api/pods"].Readers[0].Count)
	require.Equal(t, status.Syncing, rows["cache/pods"].State, "it was never filled")

	relay, err := apiserver.NewServer()
	require.NoError(t, err)
	defer relay.Close()
	require.NoError(t, cache.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", ResourceVersion: "1"}}))
	since := time.Now().Add(-time.Minute)
	apiserver.ServeCache(relay, cache, builtin.Pods().View, apiserver.FilledBy(follower{Synced: true, ProvenAt: since, Since: since, Err: io.EOF, Class: reflector.Disconnected}))
	page = new(status.Handler)
	page.Track("relay", relay)
	row := rowsOf(page.Document())["relay/pods"]
	require.Equal(t, status.Failing, row.State)
	require.Equal(t, []string{"EOF"}, row.Causes)
	require.Equal(t, []string{"disconnected"}, row.Classes)
	require.WithinDuration(t, since, row.Since, time.Second)
}

// follower is the status of whatever fills a cache.
type follower reflector.Status

func (f follower) Status() reflector.Status { return reflector.Status(f) }

func rowsOf(d status.Document) map[string]status.Copy {
	rows := map[string]status.Copy{}
	for _, c := range d.Copies {
		rows[c.Name] = c
	}
	return rows
}

// TestBytesDecodedOnce: the page shows which part of the received bytes was known already.
func TestBytesDecodedOnce(t *testing.T) {
	a := startAPI(t)
	for i := range 2000 { // the first 128 KiB of a kind are decoded plainly
		a.create(fmt.Sprint("web-", i))
	}
	pods := a.inform()
	require.NoError(t, pods.WaitSynced(t.Context()))
	page := new(status.Handler)
	page.Track("pods", pods)
	row := page.Document().Copies[0]
	require.Positive(t, row.ReceivedBytes)
	require.Greater(t, row.SharedBytes, row.ReceivedBytes/4)
	require.Less(t, row.SharedBytes, row.ReceivedBytes)
	_, body := get(t, serve(t, page)+"?copy=pods", "text/html")
	require.Regexp(t, `<p>\d\d % known, and not decoded again`, body)
}
