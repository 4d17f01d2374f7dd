// Command whose names the pod of each IP address in its input, also minutes after the pod is gone.
package main

import (
	"bufio"
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	check(err)
	pods := sources.New(os.Getenv("NODE_NAME"), sources.APIServer(client),
		sources.Checkpoint(os.Getenv("STATE")), // for a restart while the API server is away
		sources.KeepEnded(5*time.Minute))       // for data that comes late
	metrics, err := prom.New(prometheus.DefaultRegisterer)
	check(err)
	metrics.Track("node", pods)
	http.Handle("/metrics", promhttp.Handler())
	http.Handle("/readyz", reflector.ReadyHandler(3*time.Minute, pods))
	go func() { check(http.ListenAndServe(os.Getenv("ADDRESS"), nil)) }()
	go func() {
		check(pods.Run(ctx))
		os.Exit(0) // at an interrupt
	}()
	go func() {
		for range pods.Updates() { // the look-ups have each of them already
		}
	}()
	<-pods.Synced()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if address, err := netip.ParseAddr(lines.Text()); err != nil {
			fmt.Println(err)
		} else if p := pods.ByIP(address); p != nil {
			fmt.Println(address, "is", p.Pod.Namespace+"/"+p.Pod.Name)
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
