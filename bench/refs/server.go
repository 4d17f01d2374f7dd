package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
	objects "github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/collection"
)

const namespace = "default"

func secretName(i int) string { return fmt.Sprintf("secret-%05d", i) }

// nodeName is the name of a Node as its kubelet reports it, with 25 images.
func nodeName(i int) string { return objects.KindOf("Node").Object(i, 0, 0).GetName() }

// serve is the process of the API server.
func serve(ctx context.Context, w world) {
	api := harness.Must(apiserver.NewServer())
	secrets := cluster.Fill(api, "Secret", w.Secrets, func(s *corev1.Secret, i int) {
		value := make([]byte, w.Size)
		copy(value, fmt.Sprintf("planted value of %s ", secretName(i)))
		for j := 40; j < len(value); j++ {
			value[j] = byte('a' + (i+j)%26)
		}
		*s = corev1.Secret{Data: map[string][]byte{"value": value}}
		s.Namespace, s.Name = namespace, secretName(i)
	})
	cluster.Fill(api, "Node", w.Nodes, func(*corev1.Node, int) {})
	var counts harness.Counts
	var waiting, most atomic.Int64 // requests without a state yet, and the most at one time
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for n := waiting.Add(1); ; {
			if now := most.Load(); n <= now || most.CompareAndSwap(now, n) {
				break
			}
		}
		began := &beginning{ResponseWriter: w, waiting: &waiting}
		defer began.answered()
		api.ServeHTTP(began, r)
	})
	control := harness.Control(nil, map[string]func(*http.Request) any{
		"/load": func(*http.Request) any { // since the last time
			return harness.Figures{"connections": float64(counts.All.Swap(0)), "waiting": float64(most.Swap(0))}
		},
		"/churn": func(*http.Request) any { w.churn(secrets); return nil },
	})
	const streams = 100 // kube-apiserver's default
	harness.Serving{TLS: true, Streams: streams, Counts: &counts}.Say(ctx, counted, control)
}

// churn changes the Secrets that are not referred to.
func (w world) churn(secrets *collection.Collection[*corev1.Secret]) {
	for i := range w.Churn {
		obj := harness.Must(secrets.Get(namespace, secretName(w.Referred+i%(w.Secrets-w.Referred)))).DeepCopy()
		obj.Labels = map[string]string{"churn": fmt.Sprint(i)}
		harness.Must(secrets.Update(obj))
	}
}

// beginning counts a request until the first byte of its answer.
type beginning struct {
	http.ResponseWriter
	waiting *atomic.Int64
	over    bool
}

func (b *beginning) answered() {
	if !b.over {
		b.over = true
		b.waiting.Add(-1)
	}
}

func (b *beginning) Write(p []byte) (int, error) { b.answered(); return b.ResponseWriter.Write(p) }

func (b *beginning) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b *beginning) Flush() { _ = http.NewResponseController(b.ResponseWriter).Flush() }
