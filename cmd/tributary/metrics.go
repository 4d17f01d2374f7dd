package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/prom"
)

// withMetrics answers GET /metrics with the numbers of reporters and of the process, behind a
// guard. All other requests are for the next handler.
func withMetrics(reporters map[string]metrics.Reporter, guard func(http.Handler) http.Handler, next http.Handler) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	shown, err := prom.New(registry)
	if err != nil {
		return nil, err
	}
	for name, reporter := range reporters {
		shown.Track(name, reporter)
	}
	metrics := guard(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" && r.Method == http.MethodGet {
			metrics.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}
