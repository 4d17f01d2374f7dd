package status_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/status"
)

// post asks for a verification, as a page of an origin does; empty is no browser.
func post(t *testing.T, url, name, origin string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"?verify="+name, nil)
	require.NoError(t, err)
	if origin != "" {
		request.Header.Set("Origin", origin)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text)
}

// TestVerifyFromThePage: without the option nothing is verified. With it, the page's own POST and
// that of curl are answered, and that of another page is refused.
func TestVerifyFromThePage(t *testing.T) {
	a := startAPI(t)
	pods := a.inform()
	require.NoError(t, pods.WaitSynced(t.Context()))

	closed := new(status.Handler)
	closed.Track("pods", pods)
	url := serve(t, closed)
	code, _ := post(t, url, "pods", "")
	require.Equal(t, http.StatusMethodNotAllowed, code)
	_, body := get(t, url+"?copy=pods", "text/html")
	require.NotContains(t, body, `<form method="post"`)

	open := &status.Handler{Verify: true}
	open.Track("pods", pods)
	open.Track("other", reflector.Status{})
	url = serve(t, open)
	for name, forms := range map[string]int{"pods": 1, "other": 0} {
		_, body = get(t, url+"?copy="+name, "text/html")
		require.Equal(t, forms, strings.Count(body, `<form method="post"`), name)
	}
	for _, origin := range []string{"", url} {
		code, body = post(t, url, "pods", origin)
		require.Equal(t, http.StatusOK, code, body)
		require.Regexp(t, `^pods is as the server has it: 1 objects at version \d+\.\n$`, body)
	}
	code, _ = post(t, url, "pods", "https://evil.example")
	require.Equal(t, http.StatusForbidden, code)
	for _, name := range []string{"other", "nothing"} {
		code, _ = post(t, url, name, "")
		require.Equal(t, http.StatusNotFound, code)
	}
}

// TestVerifyCopiesOfASet: a copy of a set is verified by its name.
func TestVerifyCopiesOfASet(t *testing.T) {
	a := startAPI(t)
	set := informer.NewSet(&rest.Config{Host: "http://" + a.address})
	pods, err := informer.Acquire[corev1.Pod](set, corev1.SchemeGroupVersion.WithResource("pods"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- set.Run(ctx) }()
	defer func() {
		pods.Close()
		cancel()
		require.NoError(t, <-ended)
		http.DefaultClient.CloseIdleConnections()
	}()
	require.NoError(t, pods.WaitSynced(t.Context()))
	page := &status.Handler{Verify: true}
	page.Track("", set)
	url := serve(t, page)
	row := page.Document().Copies[0]
	require.True(t, row.CanVerify)
	code, body := post(t, url, strings.ReplaceAll(row.Name, " ", "+"), "")
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, "is as the server has it")
	code, _ = post(t, url, "another", "")
	require.Equal(t, http.StatusNotFound, code)
}

// drifting is an informer whose verification is the test's.
type drifting struct {
	verify func(context.Context) (informer.Drift, error)
	drift  informer.Drift
}

func (d drifting) Verify(ctx context.Context) (informer.Drift, error) { return d.verify(ctx) }

func (d drifting) Samples(name string) iter.Seq[metrics.Sample] {
	return informer.Status{Status: reflector.Status{Synced: true, ProvenAt: time.Now()}, Drift: d.drift}.Samples(name)
}

// TestDriftOnThePage: a copy that differs is not well, and an answer names each object and no
// value.
func TestDriftOnThePage(t *testing.T) {
	drift := informer.Drift{At: time.Now(), Objects: 9, Count: 3, Differences: []informer.Difference{
		{Key: "a/b", Server: "7", Store: "5"}, {Key: "a/c", Server: "8"}, {Key: "a/d", Server: "4", Store: "4", Path: "spec.nodeName"}, {Key: "a/e", Store: "2"},
	}}
	page := &status.Handler{Verify: true}
	page.Track("pods", drifting{func(context.Context) (informer.Drift, error) { return drift, nil }, drift})
	failing := drifting{func(context.Context) (informer.Drift, error) { return informer.Drift{}, errors.New("no\x1banswer") }, informer.Drift{}}
	page.Track("other", failing)
	row := rowsOf(page.Document())["pods"]
	require.Equal(t, status.Wrong, row.State)
	require.Equal(t, []string{"drift"}, row.Classes)
	require.NotEmpty(t, row.Advice)
	require.Equal(t, 3, *row.Drift)
	url := serve(t, page)
	code, body := post(t, url, "pods", "")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, `pods: 3 of 9 objects differ from the server's.
  a/b: the server has version 7, the copy 5
  a/c: the copy lacks it; the server has version 8
  a/d: spec.nodeName differs under version 4
  a/e: the server has it no more; the copy has version 2
`, body)
	code, body = post(t, url, "other", "")
	require.Equal(t, http.StatusBadGateway, code)
	require.Equal(t, "no\\x1banswer\n", body)
}

// TestOneVerificationAtATime: a second one is refused while the first one asks the server.
func TestOneVerificationAtATime(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	page := &status.Handler{Verify: true}
	page.Track("pods", drifting{verify: func(context.Context) (informer.Drift, error) {
		close(asked)
		<-answer
		return informer.Drift{}, nil
	}})
	url := serve(t, page)
	first := make(chan int)
	go func() {
		code, _ := post(t, url, "pods", "")
		first <- code
	}()
	<-asked
	code, body := post(t, url, "pods", "")
	require.Equal(t, http.StatusConflict, code, body)
	close(answer)
	require.Equal(t, http.StatusOK, <-first)
}
