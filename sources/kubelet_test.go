package sources_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/sources/static"
)

// TestKubeletURL runs the sequences for a URL.
func TestKubeletURL(t *testing.T) {
	ab, bc := podList(item("a", "v1"), item("b", "v1")), podList(item("b", "v1"), item("c", "v1"))
	type one struct {
		answer http.HandlerFunc
		want   []string
	}
	type steps = []one
	step := func(answer http.HandlerFunc, want ...string) one { return one{answer, want} }
	for _, row := range []struct {
		name  string
		steps steps
	}{
		{"one pod", steps{step(body(manifestOf("p", "v1")), "ADD http p-node-1=v1")}},
		{"a list, in its order", steps{step(body(podList(item("b", "v1"), item("a", "v1"))), "ADD http b-node-1=v1 a-node-1=v1")}},
		{"a list changes", steps{
			step(body(ab), "ADD http a-node-1=v1 b-node-1=v1"), step(body(bc), "REMOVE http a-node-1=v1", "ADD http c-node-1=v1"),
			step(body(bc)), step(status(500)), step(body(bc)), step(status(404)), step(hijacked("")),
			step(body(podList()), "REMOVE http b-node-1=v1 c-node-1=v1"),
		}},
		{"none at first", steps{step(body(podList()), "ADD http")}},
		{"an empty body, and the same one after it for ever", steps{
			step(body(ab), "ADD http a-node-1=v1 b-node-1=v1"), step(body(""), "REMOVE http a-node-1=v1 b-node-1=v1"),
			step(body(ab)), step(body(ab)), step(body(ab+" "), "ADD http a-node-1=v1 b-node-1=v1"),
		}},
		{"an empty body at first", steps{step(body(""), "ADD http")}},
		{"errors at first", steps{step(status(500)), step(status(204)), step(body(strings.Repeat(" ", manifest.MaxSize))),
			step(body(ab), "ADD http a-node-1=v1 b-node-1=v1")}},
		{"one bad pod", steps{step(body(podList(item("a", "v1"), item("b", "")))), step(body(ab), "ADD http a-node-1=v1 b-node-1=v1")}},
		{"two of one name", steps{step(body(podList(item("a", "v1"), item("a", "v2"))), "ADD http a-node-1=v1")}},
		{"a List, a bare array", steps{
			step(body(strings.Replace(ab, "PodList", "List", 1))), step(body("[" + item("a", "v1") + "]")), step(body(ab), "ADD http a-node-1=v1 b-node-1=v1"),
		}},
		{"two documents", steps{step(body(manifestOf("p", "v1")+"---\n"+manifestOf("q", "v1")), "ADD http p-node-1=v1")}},
	} {
		t.Run(row.name, func(t *testing.T) {
			ticks := make(chan time.Time)
			server := serve(t, row.steps[0].answer)
			r := start(t, sources.LikeKubelet(), pollingSource(t, server.URL, sources.Ticks(ticks)))
			poll := func(answer http.HandlerFunc) {
				before := len(server.asked())
				server.now(answer)
				ticks <- time.Now()
				require.Eventually(t, func() bool { return len(server.asked()) > before }, patience, time.Millisecond)
			}
			for i, step := range row.steps {
				if i > 0 {
					poll(step.answer)
				}
				r.expect(step.want...)
			}
			// Nothing else is on its way.
			poll(body(manifestOf("end", "v1")))
			last := r.next()
			if strings.HasPrefix(last, "REMOVE") {
				last = r.next()
			}
			require.Equal(t, "ADD http end-node-1=v1", last)
		})
	}
}

func TestKubeletURLFollowsRedirects(t *testing.T) {
	other := serve(t, body(manifestOf("p", "v1")))
	server := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	start(t, sources.LikeKubelet(), pollingSource(t, server.URL)).expect("ADD http p-node-1=v1")
}

// TestKubeletAPIServer runs the sequences for the API server.
func TestKubeletAPIServer(t *testing.T) {
	c := newCluster(t)
	c.create("b", onNode("node-1"))
	c.create("a", onNode("node-1"))
	r := start(t, sources.LikeKubelet(), sources.APIServer(c.client))
	first := r.update()
	require.Equal(t, "ADD api a=v1 b=v1", describe(first))
	c.change("a", label("x"))
	r.expect("UPDATE api a=v1")
	c.change("a", func(p *corev1.Pod) { p.Finalizers = []string{"example.com/f"} })
	c.status("a", phase(corev1.PodRunning))
	u := r.update()
	require.Equal(t, "RECONCILE api a=v1", describe(u))
	require.Empty(t, u.Pods[0].Finalizers, "it stays as it was first seen")
	require.Equal(t, first.Pods[0].ResourceVersion, u.Pods[0].ResourceVersion)
	c.delete("a", 30)
	u = r.update()
	require.Equal(t, "DELETE api a=v1", describe(u))
	require.EqualValues(t, 30, *u.Pods[0].DeletionGracePeriodSeconds)
	c.status("a", phase(corev1.PodFailed))
	r.expect("RECONCILE api a=v1")
	c.delete("a", 0) // forced, but the finalizer holds it
	u = r.update()
	require.Equal(t, "DELETE api a=v1", describe(u))
	require.EqualValues(t, 0, *u.Pods[0].DeletionGracePeriodSeconds)
	c.change("a", func(p *corev1.Pod) { p.Finalizers = nil })
	r.expect("REMOVE api a=v1")
	c.remove("b")
	c.create("b", onNode("node-1"))
	r.expect("REMOVE api b=v1", "ADD api b=v1")
	c.create("mirror", onNode("node-1"), annotation(manifest.SourceAnnotation, sources.FileSource))
	u = r.update()
	require.Equal(t, "ADD api mirror=v1", describe(u))
	require.Equal(t, sources.APISource, u.Pods[0].Annotations[manifest.SourceAnnotation])
	empty := start(t, sources.LikeKubelet(), sources.APIServer(newCluster(t).client))
	empty.expect("ADD api")
}

// TestURLWaitsThePeriodAfterEachAnswer: a server that answers slowly is not asked back to back.
func TestURLWaitsThePeriodAfterEachAnswer(t *testing.T) {
	for name, options := range map[string][]sources.Option{"like the kubelet": {sources.LikeKubelet()}, "by default": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var asked []time.Duration
				slow := roundTripper(func(*http.Request) (*http.Response, error) {
					asked = append(asked, time.Since(began))
					time.Sleep(9 * time.Second)
					answer := httptest.NewRecorder()
					answer.WriteString(podList())
					return answer.Result(), nil
				})
				options := append(options, sources.HTTP("http://pods", static.WithInterval(5*time.Second), static.WithTransport(slow)))
				s := sources.New("node-1", options...)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- s.Run(ctx) }()
				<-s.Updates()
				time.Sleep(30*time.Second + time.Millisecond)
				cancel()
				require.NoError(t, <-ended)
				require.Equal(t, []time.Duration{0, 14 * time.Second, 28 * time.Second}, asked)
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestKubeletMerge: of a pod that the kubelet knows it takes over some fields, and two pods of one
// UID are one to it.
func TestKubeletMerge(t *testing.T) {
	source := newScripted("s")
	r := start(t, sources.LikeKubelet(), sources.Custom(source))
	generation := func(p *corev1.Pod) { p.Generation, p.ResourceVersion = 2, "9" }
	source.set(t, podOf("p", "v1"))
	r.expect("ADD s p=v1")
	source.set(t, podOf("p", "v2", generation))
	u := r.update()
	require.Equal(t, "UPDATE s p=v2", describe(u))
	require.EqualValues(t, 2, u.Pods[0].Generation)
	require.Empty(t, u.Pods[0].ResourceVersion, "it stays as it was first seen")
	source.set(t, podOf("p", "v3"), podOf("q", "v2", uid("uid-p")))
	r.expect("UPDATE s p=v2 p=v2") // to v3, and back
	source.set(t)
	r.expect("REMOVE s p=v2")
}
