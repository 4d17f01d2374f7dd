package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tributary-go/tributary/prom"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/status"
)

// maxStaleness is how long a source is believed without a proof. That of the API server's pods is
// up to two minutes old, and manifests are looked at every 20 seconds.
const maxStaleness = 3 * time.Minute

// counts are the metrics of the agent itself.
type counts struct {
	lines, failures prometheus.Counter
	tails           prometheus.Gauge
}

func newCounts(registry prometheus.Registerer) (counts, error) {
	c := counts{
		lines:    prometheus.NewCounter(prometheus.CounterOpts{Name: "node_agent_lines_total", Help: "Lines joined with their pods."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "node_agent_read_failures_total", Help: "Log files and folders that could not be read."}),
		tails:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "node_agent_tails", Help: "Containers whose logs are followed."}),
	}
	return c, errors.Join(registry.Register(c.lines), registry.Register(c.failures), registry.Register(c.tails))
}

// endpoints answers probes, Prometheus and people.
type endpoints struct {
	http.Handler
	page *status.Handler
}

func newEndpoints(node string, pods *sources.Sources, refs *references, registry *prometheus.Registry) (endpoints, error) {
	metrics, err := prom.New(registry)
	if err != nil {
		return endpoints{}, err
	}
	metrics.Track(node, pods)
	page := new(status.Handler)
	page.Track(node, pods)
	mux := http.NewServeMux()
	mux.Handle("GET /readyz", reflector.ReadyHandler(maxStaleness, pods))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /statusz", page)
	if refs != nil {
		mux.Handle("GET /references", refs)
	}
	return endpoints{mux, page}, nil
}

// serve answers until ctx ends.
func (e endpoints) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: e, ReadHeaderTimeout: 10 * time.Second}
	until, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- server.Serve(listener) }()
	go func() { ended <- e.page.Run(until) }()
	first := <-ended // the page ends with ctx
	stop()
	err := errors.Join(first, server.Close(), <-ended) // viewers follow the page for ever
	if ctx.Err() != nil {
		return nil
	}
	return err
}
