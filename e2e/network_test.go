package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/e2e/netfault"
	"github.com/tributary-go/tributary/reflector"
)

// liveness of the followers in these tests; the writer writes far more often.
const liveness = 4 * time.Second

// A7: whatever the network does, the copy is whole again afterwards, without a list.
func TestFaultyNetwork(t *testing.T) {
	onServers(t, faultyNetwork)
}

func faultyNetwork(t *testing.T, on server) {
	c := on.start(t)
	w := newWorld(t, c)
	w.fill(on.pods())
	writer := w.startWriter(20*time.Millisecond, false)
	result := table("fault", "protocol", "fresh again after", "watches", "lists", "connections", "requests ended")
	for _, fault := range []struct {
		name   string
		strike func(*netfault.Proxy)
		heal   func(*netfault.Proxy)
		shown  reflector.Class // how the watch ends; empty: it goes on
		within time.Duration
	}{
		{"delayed by 200 ms", func(p *netfault.Proxy) { p.Delay(200 * time.Millisecond) }, func(p *netfault.Proxy) { p.Delay(0) }, "", 3 * time.Second},
		{"throttled to 64 KB/s", func(p *netfault.Proxy) { p.Throttle(64 << 10) }, func(p *netfault.Proxy) { p.Throttle(0) }, "", 10 * time.Second},
		{"held back for 2 s", func(p *netfault.Proxy) { p.Pause(); pass(2 * time.Second); p.Resume() }, nil, "", 4 * time.Second},
		{"cut in the middle of a frame", func(p *netfault.Proxy) { p.CutAfter(700) }, nil, reflector.Disconnected, 4 * time.Second},
		{"reset", (*netfault.Proxy).Reset, nil, reflector.Disconnected, 4 * time.Second},
		{"swallowed without FIN", (*netfault.Proxy).Blackhole, nil, reflector.Silent, liveness + 3*time.Second},
	} {
		for _, protocol := range []string{"h2", "http/1.1"} {
			t.Run(fault.name+" "+protocol, func(t *testing.T) {
				found, fault := liveness, fault // h2 may change what is true of it
				if protocol == "h2" && fault.shown == reflector.Silent {
					// All requests of a client share one connection, so the next watch would go
					// into the same hole. It is the transport's ping that ends the connection:
					// after 45 s, which is within the default liveness, or sooner where a client is
					// told so.
					if full {
						found, fault.shown, fault.within = 90*time.Second, reflector.Disconnected, 50*time.Second
					} else {
						fault.within = 2*liveness + 3*time.Second
						t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "3")
						t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "3")
					}
				}
				proxy, ended := netfault.Listen(t, c.Server.Address()), &ends{}
				f := w.followPods(t, speaking(c.Server.ConfigVia(proxy.Address(), cluster.Agent), protocol), nodeName(3), nil,
					reflector.WithLiveness(found), reflector.WithMetrics(ended))
				requireSynced(t, f, 30*time.Second)
				w.freshness(t, time.Now(), 5*time.Second, await(f, nodeName(3)))
				began := time.Now()
				fault.strike(proxy)
				took := w.freshness(t, began, time.Minute, await(f, nodeName(3)))[0]
				if fault.heal != nil {
					fault.heal(proxy)
				}
				classes, text := ended.since(began)
				writer.quietly(func() { requireWhole(t, f, 20*time.Second) })
				result.add(fault.name, protocol, took.Round(10*time.Millisecond), f.status().Watches, f.status().Lists, proxy.Accepted(), text)
				require.Equal(t, 1, lists(f), "%s%s", text, brief(f.sent().since(began)))
				require.Less(t, took, fault.within, "%s%s", text, brief(f.sent().since(began)))
				if fault.shown == "" {
					require.Empty(t, classes, "the stream goes on")
				} else {
					require.Equal(t, fault.shown, classes[0], text)
				}
			})
		}
	}
	t.Logf("A7: liveness %s\n%s", liveness, result)
}

// speaking makes a client speak one version of HTTP.
func speaking(config *rest.Config, protocol string) *rest.Config {
	config.NextProtos = []string{protocol}
	return config
}
