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

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/internal/pipes"
)

// TestAQuietHour counts the requests of a simulated hour on which nothing happens to agents with
// client-go's informers of pods, services and nodes.
func TestAQuietHour(t *testing.T) {
	fmt.Println("| agents | | requests to the upstream in an hour: watches, lists, reviews, proofs, other | open watches, connections |\n|---|---|---|---|")
	got := map[string]harness.Figures{}
	for _, agents := range []int{1, 10, 100} {
		for _, way := range []string{direct, open, oneToken, tokens, seldom} {
			synctest.Test(t, func(t *testing.T) {
				c := quietHour(t, agents, way)
				fmt.Printf("| %d | %s | %.0f, %.0f, %.0f, %.0f, %.0f | %.0f, %.0f |\n", agents, way,
					c["watches"], c["lists"], c["reviews"], c["probes"], c["other"], c["open"], c["connections"])
				got[fmt.Sprint(agents, way)] = c
			})
		}
	}
	require.EqualValues(t, 300, got["100direct"]["open"])
	require.EqualValues(t, 3, got["100"+open]["open"], "one watch for each kind")
	require.Less(t, got["100"+open]["watches"], got["100direct"]["watches"]/10)
	require.LessOrEqual(t, got["100"+open]["probes"], 12., "the relay compares each of three copies four times; a client that comes back costs nothing")
}

// seldom has reviews that count for five minutes.
const seldom = tokens + ", renewed every 5 minutes"

func quietHour(t *testing.T, agents int, way string) harness.Figures {
	var more []reviews.Option
	if way == seldom {
		more = append(more, reviews.WithRenewal(5*time.Minute))
	}
	o := cluster.New(cluster.Size{Pods: 10, Nodes: 2, Services: 3})
	up, down := pipes.New(), pipes.New()
	upstream := &http.Server{Handler: o.Handler()}
	go func() { _ = upstream.Serve(o.Connections.Of(up)) }()
	toUpstream := &rest.Config{Host: "http://upstream", BearerToken: "the-relay", Dial: up.Dial, QPS: -1}
	r := newRelay(relaying{Node: cluster.Node(0), Open: way == open, Types: 99}, toUpstream, more...)
	web := &http.Server{Handler: r}
	go func() { _ = web.Serve(down) }()

	ctx, cancel := context.WithCancel(t.Context())
	var synced, running sync.WaitGroup
	for i := range agents {
		config := harness.Config("http://relay")
		config.BearerToken, config.Dial = fmt.Sprint("agent-", i), down.Dial
		switch way {
		case direct:
			config.Host, config.Dial = "http://upstream", up.Dial
		case oneToken:
			config.BearerToken = "agents"
		}
		synced.Add(1)
		running.Go(func() { cluster.Informers(ctx, config, cluster.Node(0), true, synced.Done) })
	}
	synced.Wait()
	time.Sleep(time.Minute)
	before := o.Figures()
	time.Sleep(time.Hour)
	after := cluster.Since(o.Figures(), before)

	cancel()
	running.Wait()
	require.NoError(t, r.Shutdown(t.Context()))
	require.NoError(t, web.Close())
	o.API.Close()
	require.NoError(t, upstream.Close())
	return after
}
