package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/internal/self"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

const namespace = "default"

func secretName(i int) string { return fmt.Sprintf("secret-%05d", i) }

// nodeOf is a Node as its kubelet reports it, with 25 images.
func nodeOf(i int) *corev1.Node {
	kind, _ := world.KindOf("Node")
	node := kind.Object(i, 0, 0).(*corev1.Node)
	node.ResourceVersion = ""
	return node
}

// load has the server's figures of one process.
type load struct {
	Connections int64
	Waiting     int64 // the most requests at one time that had no state yet
}

// serve prints its address and serves until its input ends.
func serve(ctx context.Context, s settings) error {
	api, err := apiserver.NewServer()
	if err != nil {
		return err
	}
	secrets := apiserver.Serve(api, builtin.Of[*corev1.Secret]())
	for i := range s.Secrets {
		value := make([]byte, s.Size)
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
	for i := range s.Nodes {
		if _, err := nodes.Create(nodeOf(i)); err != nil {
			return err
		}
	}
	var connections, waiting, most atomic.Int64
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
	mux.HandleFunc("/load", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(load{connections.Swap(0), most.Swap(0)})
	})
	mux.HandleFunc("/churn", func(w http.ResponseWriter, _ *http.Request) {
		for i := range s.Churn { // of the other Secrets
			obj, err := secrets.Get(namespace, secretName(s.Referred+i%(s.Secrets-s.Referred)))
			if err == nil {
				obj = obj.DeepCopy()
				obj.Labels = map[string]string{"churn": fmt.Sprint(i)}
				_, err = secrets.Update(obj)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
		}
	})
	hs := httptest.NewUnstartedServer(mux)
	hs.EnableHTTP2 = true
	// A client closes connections that it dials and does not use.
	hs.Config.ErrorLog = log.New(io.Discard, "", 0)
	hs.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100} // kube-apiserver's default
	hs.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	hs.StartTLS()
	fmt.Println(hs.URL)
	<-self.UntilInputEnds(ctx).Done()
	os.Exit(0) // no watch is waited for
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
