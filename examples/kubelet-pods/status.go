package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/status"
)

// showStatus serves the status page, if a flag asks for it, until ctx ends. ended has its error
// then.
func showStatus(ctx context.Context, o options, pods *sources.Sources, log logr.Logger) (ended <-chan error, err error) {
	done := make(chan error, 1)
	if o.status == "" {
		done <- nil
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
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	go func() {
		err := errors.Join(page.Run(ctx), server.Close()) // viewers follow the page for ever
		if why := <-served; !errors.Is(why, http.ErrServerClosed) {
			err = errors.Join(err, why)
		}
		done <- err
	}()
	return done, nil
}
