package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tributary-go/tributary/reflector"
)

// maxStaleness is how long the copies are believed without a proof by the server. That of a healthy
// copy is up to two minutes old.
const maxStaleness = 3 * time.Minute

// handler answers /readyz, by the copies and not by the lease: a replica that waits for the lease
// is ready to take over.
func handler(c *controller, registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /readyz", reflector.ReadyHandler(maxStaleness, c.pods, c.nodes))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /statusz", c.page)
	return mux
}

// serve answers until ctx ends, and then lets requests end.
func serve(ctx context.Context, listener net.Listener, answers http.Handler, log logr.Logger) error {
	at := "http://" + listener.Addr().String()
	log.Info("Serving", "readyz", at+"/readyz", "metrics", at+"/metrics", "status", at+"/statusz")
	server := &http.Server{
		Handler: answers, ReadHeaderTimeout: 10 * time.Second,
		// A browser that follows the status page is let go when this ends.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := server.Shutdown(ending)
	<-ended
	if errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	}
	return err
}

// counts are the metrics of the controller itself.
type counts struct {
	applies, failures prometheus.Counter
	leading           prometheus.Gauge
}

func newCounts(registry prometheus.Registerer, depth func() int) (counts, error) {
	c := counts{
		applies:  prometheus.NewCounter(prometheus.CounterOpts{Name: "controller_applies_total", Help: "Labels written."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "controller_failures_total", Help: "Looks at a node that failed and are made again."}),
		leading:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "controller_leading", Help: "1 while this replica holds the lease and works."}),
	}
	queued := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "controller_queue_depth", Help: "Nodes to be looked at."},
		func() float64 { return float64(depth()) })
	var all error
	for _, collector := range []prometheus.Collector{c.applies, c.failures, c.leading, queued} {
		all = errors.Join(all, registry.Register(collector))
	}
	return c, all
}
