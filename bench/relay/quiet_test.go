package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/internal/pipes"
)

// TestAQuietHour counts the requests of a simulated hour on which nothing happens to agents with
// client-go's informers of pods, services and nodes.
func TestAQuietHour(t *testing.T) {
	fmt.Println("| agents | | requests to the upstream in an hour: watches, lists, reviews, proofs, other | open watches, connections |\n|---|---|---|---|")
	got := map[string]counts{}
	for _, agents := range []int{1, 10, 100} {
		for _, way := range []string{direct, open, oneToken, tokens, seldom} {
			synctest.Test(t, func(t *testing.T) {
				c := quietHour(t, agents, way)
				fmt.Printf("| %d | %s | %d, %d, %d, %d, %d | %d, %d |\n", agents, way, c.Watches, c.Lists, c.Reviews, c.Probes, c.Other, c.Open, c.Connections)
				got[fmt.Sprint(agents, way)] = c
			})
		}
	}
	require.EqualValues(t, 300, got["100direct"].Open)
	require.EqualValues(t, 3, got["100"+open].Open, "one watch for each kind")
	require.Less(t, got["100"+open].Watches, got["100direct"].Watches/10)
	require.Zero(t, got["100"+open].Probes, "a client that comes back costs nothing")
}

// seldom has reviews that count for five minutes.
const seldom = tokens + ", renewed every 5 minutes"

func quietHour(t *testing.T, agents int, way string) counts {
	var more []reviews.Option
	if way == seldom {
		more = append(more, reviews.WithRenewal(5*time.Minute))
	}
	o, err := newOrigin(upstreamSettings{Pods: 10, Nodes: 2, Services: 3})
	require.NoError(t, err)
	up, down := pipes.New(), pipes.New()
	upstream := &http.Server{Handler: o.around(o.api)}
	go func() { _ = upstream.Serve(counted{up, &o.counters}) }()
	toUpstream := &rest.Config{Host: "http://upstream", BearerToken: "the-relay", Dial: up.Dial, QPS: -1}
	r, err := newRelay(relaySettings{Node: nodeName(0), Open: way == open, Types: 99}, toUpstream, more...)
	require.NoError(t, err)
	web := &http.Server{Handler: r}
	go func() { _ = web.Serve(down) }()

	ctx, cancel := context.WithCancel(t.Context())
	var synced, running sync.WaitGroup
	for i := range agents {
		config := &rest.Config{Host: "http://relay", BearerToken: fmt.Sprint("agent-", i), Dial: down.Dial, QPS: -1}
		switch way {
		case direct:
			config.Host, config.Dial = "http://upstream", up.Dial
		case oneToken:
			config.BearerToken = "agents"
		}
		synced.Add(1)
		running.Go(func() { _ = beAgent(ctx, config, nodeName(0), synced.Done) }) // till ctx ends
	}
	synced.Wait()
	time.Sleep(time.Minute)
	before := o.counts()
	time.Sleep(time.Hour)
	after := o.counts().since(before)

	cancel()
	running.Wait()
	require.NoError(t, r.Shutdown(t.Context()))
	require.NoError(t, web.Close())
	o.api.Close()
	require.NoError(t, upstream.Close())
	return after
}
