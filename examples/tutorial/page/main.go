// Command page is the last step of docs/tutorial.md: the agent, with readiness and a status page.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/examples/tutorial/agent"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/status"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags(os.Getenv("SERVER"), os.Getenv("KUBECONFIG"))
	check(err)
	a, err := agent.New(ctx, config, "node-1", os.Stdout)
	check(err)

	page := new(status.Handler)
	defer page.Track("pods", a.Pods)()
	http.Handle("/readyz", reflector.ReadyHandler(3*time.Minute, a.Pods))
	http.Handle("/", page)
	go func() { check(http.ListenAndServe(os.Getenv("ADDRESS"), nil)) }()

	check(a.Pods.Run(ctx)) // until Ctrl-C
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
