package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/bench/harness"
	objects "github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
)

const namespace = "default"

func secretName(i int) string { return fmt.Sprintf("secret-%05d", i) }

// nodeOf is a Node as its kubelet reports it, with 25 images.
func nodeOf(i int) *corev1.Node {
	kind, _ := objects.KindOf("Node")
	node := kind.Object(i, 0, 0).(*corev1.Node)
	node.ResourceVersion = ""
	return node
}

// serve prints its address and serves until its input ends.
func serve(ctx context.Context, w world) error {
	api, err := apiserver.NewServer()
	if err != nil {
		return err
	}
	secrets := apiserver.Serve(api, builtin.Of[*corev1.Secret]())
	for i := range w.Secrets {
		value := make([]byte, w.Size)
		copy(value, fmt.Sprintf("planted value of %s ", secretName(i)))
		for j := 40; j < len(value); j++ {
			value[j] = byte('a' + (i+j)%26)
		}
		if _, err := secrets.Create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName(i)}, Data: map[string][]byte{"value": value},
		}); err != nil {
			return err
		}
	}
	nodes := apiserver.Serve(api, builtin.Of[*corev1.Node]())
	for i := range w.Nodes {
		if _, err := nodes.Create(nodeOf(i)); err != nil {
			return err
		}
	}
	var counts harness.Counts
	var waiting, most atomic.Int64 // requests without a state yet, and the most at one time
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		for n := waiting.Add(1); ; {
			if now := most.Load(); n <= now || most.CompareAndSwap(now, n) {
				break
			}
		}
		began := &beginning{ResponseWriter: w, waiting: &waiting}
		defer began.answered()
		api.ServeHTTP(began, r)
	})
	mux.HandleFunc("/load", harness.Answer(func(*http.Request) (any, error) { // since the last time
		return harness.Figures{"connections": float64(counts.All.Swap(0)), "waiting": float64(most.Swap(0))}, nil
	}))
	mux.HandleFunc("/churn", harness.Answer(func(*http.Request) (any, error) { return nil, w.churn(secrets) }))
	// kube-apiserver's default
	url, err := harness.Serving{TLS: true, Streams: 100, Counts: &counts}.Serve(mux)
	if err == nil {
		harness.Say(ctx, url)
	}
	return err
}

// churn changes the Secrets that are not referred to.
func (w world) churn(secrets *collection.Collection[*corev1.Secret]) error {
	for i := range w.Churn {
		obj, err := secrets.Get(namespace, secretName(w.Referred+i%(w.Secrets-w.Referred)))
		if err != nil {
			return err
		}
		obj = obj.DeepCopy()
		obj.Labels = map[string]string{"churn": fmt.Sprint(i)}
		if _, err := secrets.Update(obj); err != nil {
			return err
		}
	}
	return nil
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
