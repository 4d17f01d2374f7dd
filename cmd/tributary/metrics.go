package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tributary-go/tributary/prom"
	"github.com/tributary-go/tributary/server/apiserver"
)

// withMetrics answers GET /metrics with the numbers of the server, its collections and the process.
func withMetrics(server *apiserver.Server) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	shown, err := prom.New(registry)
	if err != nil {
		return nil, err
	}
	shown.Track("etcd", server)
	metrics := server.Guard(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" && r.Method == http.MethodGet {
			metrics.ServeHTTP(w, r)
			return
		}
		server.ServeHTTP(w, r)
	}), nil
}
