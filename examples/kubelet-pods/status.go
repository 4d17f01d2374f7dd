package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/status"
)

// listen listens for the status page; nil if no flag asks for one.
func (o options) listen() (net.Listener, error) {
	if o.status == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", o.status)
	if err != nil {
		return nil, fmt.Errorf("--status: %w", err)
	}
	return listener, nil
}

// showStatus serves the status page until ctx ends, if there is a listener. ended has its error
// then.
func showStatus(ctx context.Context, o options, listener net.Listener, pods *sources.Sources) (ended <-chan error) {
	done := make(chan error, 1)
	if listener == nil {
		done <- nil
		return done
	}
	page := &status.Handler{Title: "kubelet-pods, " + o.node}
	page.Track(o.node, pods)
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	go func() {
		err := errors.Join(page.Run(ctx), server.Close()) // viewers follow the page for ever
		if why := <-served; !errors.Is(why, http.ErrServerClosed) {
			err = errors.Join(err, why)
		}
		done <- err
	}()
	return done
}
