package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/status"
)

// showStatus serves the status page, if a flag asks for it, until ctx ends. ended closes then.
func showStatus(ctx context.Context, o options, pods *sources.Sources, log logr.Logger) (ended <-chan struct{}, err error) {
	done := make(chan struct{})
	if o.status == "" {
		close(done)
		return done, nil
	}
	listener, err := net.Listen("tcp", o.status)
	if err != nil {
		return nil, fmt.Errorf("--status: %w", err)
	}
	page := &status.Handler{Title: "kubelet-pods, " + o.node}
	page.Track(o.node, pods)
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second}
	log.Info("Serving", "status", "http://"+listener.Addr().String())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // it ends by Close
	}()
	go func() {
		defer close(done)
		_ = page.Run(ctx)
		_ = server.Close() // viewers follow the page for ever
		<-served
	}()
	return done, nil
}
