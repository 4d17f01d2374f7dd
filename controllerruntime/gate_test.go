package controllerruntime_test

import (
	"net/http"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// gate holds back the watches of some pods, as a slow network does.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while it is open
}

// newGate holds back, once it is shut, the watches whose path has the text in it.
func newGate(pods *listwatchtest.Collection[*corev1.Pod], path string) *gate {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	pods.Intercept(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if strings.Contains(r.URL.Path, path) {
			w = gated{w, g, r}
		}
		server.ServeHTTP(w, r)
	}, listwatchtest.On(listwatchtest.Watch), listwatchtest.UntilLifted())
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.open:
		g.open = make(chan struct{})
	default:
	}
}

// shutBefore shuts it when the next write comes.
func (g *gate) shutBefore(pods *listwatchtest.Collection[*corev1.Pod]) {
	pods.Intercept(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		g.shut()
		server.ServeHTTP(w, r)
	}, listwatchtest.On(listwatchtest.Create, listwatchtest.Update, listwatchtest.Patch, listwatchtest.Delete, listwatchtest.DeleteCollection))
}

func (g *gate) unlock() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
}

type gated struct {
	http.ResponseWriter
	gate    *gate
	request *http.Request
}

func (w gated) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w gated) Write(p []byte) (int, error) {
	w.gate.mu.Lock()
	open := w.gate.open
	w.gate.mu.Unlock()
	select {
	case <-open:
		return w.ResponseWriter.Write(p)
	case <-w.request.Context().Done():
		return 0, w.request.Context().Err()
	}
}
