package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

func asTimeout(err error, into *net.Error) bool { return errors.As(err, into) && (*into).Timeout() }

// listing is a list of all pods.
type listing struct{ seconds, upstream, relay float64 } // wall, and CPU of both

// measureFirst prints how long the first reader of a relay waits, and what later lists take.
func measureFirst(ctx context.Context, s settings) error {
	fmt.Printf("\n### a list of all pods in protobuf: ms, and CPU ms of upstream and relay (medians of %d, by turns)\n\n", s.repeat)
	fmt.Println("| pods | direct | the relay's first reader | a later one, proven fresh | a later one at version 0 |\n|---|---|---|---|---|")
	for _, pods := range s.pods {
		r, err := newRig(ctx, upstreamSettings{Pods: pods, Nodes: 100, Fixed: true}, relaySettings{})
		if err != nil {
			return err
		}
		all, err := r.lists(ctx, s.repeat)
		r.stop()
		if err != nil {
			return fmt.Errorf("%d pods: %w", pods, err)
		}
		fmt.Printf("| %d |", pods)
		for _, which := range all {
			fmt.Printf(" %.1f, CPU %.0f, %.0f |", 1e3*of(which, func(l listing) float64 { return l.seconds }),
				1e3*of(which, func(l listing) float64 { return l.upstream }), 1e3*of(which, func(l listing) float64 { return l.relay }))
		}
		fmt.Println()
	}
	return nil
}

// lists has a relay of its own for each first reader.
func (r rig) lists(ctx context.Context, repeat int) (all [4][]listing, err error) {
	direct := &http.Client{Transport: transport(true)}
	if _, err := r.list(ctx, direct, r.upstream.url, ""); err != nil { // connects, and encodes
		return all, err
	}
	for range repeat {
		fresh := r
		if fresh.relay, err = r.startRelay(ctx, relaySettings{}); err != nil {
			return all, err
		}
		client := &http.Client{Transport: transport(true)}
		for i, one := range []struct {
			client     *http.Client
			url, query string
		}{{direct, r.upstream.url, ""}, {client, fresh.relay.url, ""}, {client, fresh.relay.url, ""}, {client, fresh.relay.url, "?resourceVersion=0"}} {
			l, err := fresh.list(ctx, one.client, one.url, one.query)
			if err != nil {
				fresh.relay.Stop()
				return all, err
			}
			all[i] = append(all[i], l)
		}
		client.CloseIdleConnections()
		fresh.relay.Stop()
	}
	return all, nil
}

func (r rig) list(ctx context.Context, client *http.Client, url, query string) (l listing, err error) {
	before, relayBefore, err := r.both(ctx)
	if err != nil {
		return l, err
	}
	began := time.Now()
	if _, err := list(ctx, client, url, query); err != nil {
		return l, err
	}
	l.seconds = time.Since(began).Seconds()
	after, relayAfter, err := r.both(ctx)
	l.upstream, l.relay = after.CPU-before.CPU, relayAfter.CPU-relayBefore.CPU
	return l, err
}
