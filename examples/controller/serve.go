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
func handler(p *program, registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /readyz", reflector.ReadyHandler(maxStaleness, p.pods, p.nodes))
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("GET /statusz", &p.page)
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
