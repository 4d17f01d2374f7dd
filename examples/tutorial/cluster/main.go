// Command cluster is the API server of docs/tutorial.md, in memory: three pods on two nodes.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	listen := flag.String("listen", "localhost:8001", "`address` to serve at")
	flag.Parse()
	if err := run(ctx, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen string) error {
	api, err := apiserver.NewServer()
	if err != nil {
		return err
	}
	defer api.Close()
	pods := apiserver.Serve(api, builtin.Pods())
	for _, of := range []struct{ name, app, node string }{{"web-0", "web", "node-1"}, {"db-0", "db", "node-1"}, {"web-1", "web", "node-2"}} {
		_, err := pods.Create(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: of.name, Labels: map[string]string{"app": of.app}},
			Spec:       corev1.PodSpec{NodeName: of.node, Containers: []corev1.Container{{Name: "main", Image: of.app}}},
		})
		if err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("%w: give another address by --listen, and the same in SERVER", err)
	}
	fmt.Printf("serving 3 pods on 2 nodes at http://%s; Ctrl-C ends it\n", listen)
	server := &http.Server{Handler: api, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
