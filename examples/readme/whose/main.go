// Command whose names the pod and the workload of an IP: curl localhost:8080/whose?ip=10.0.0.7
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/prom"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/lookup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	check(err)
	pods := sources.New(os.Getenv("NODE_NAME"), sources.APIServer(client), sources.Checkpoint(os.Getenv("STATE")))
	who := lookup.New(pods, lookup.Owners(client), lookup.KeepEnded(5*time.Minute))
	metrics, err := prom.New(prometheus.DefaultRegisterer)
	check(err)
	metrics.Track("node", pods)
	http.Handle("/metrics", promhttp.Handler())
	http.Handle("/readyz", reflector.ReadyHandler(3*time.Minute, pods))
	http.HandleFunc("/whose", func(w http.ResponseWriter, r *http.Request) {
		address, _ := netip.ParseAddr(r.FormValue("ip"))
		if p := who.ByIP(address); p != nil {
			owner, _ := who.Owner(p.Pod) // such as its Deployment
			fmt.Fprintln(w, p.Pod.Namespace+"/"+p.Pod.Name, "of", owner.Kind, owner.Name)
		}
	})
	go func() { check(http.ListenAndServe(os.Getenv("ADDRESS"), nil)) }()
	check(who.Run(ctx)) // until an interrupt
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
