package e2e_test

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/server/relay"
)

// inProcess is a relay of this process, with the access control that the command has.
type inProcess struct {
	*relay.Relay
	w       *world
	address string
}

// relay starts a relay of an upstream. It ends with the test.
func (w *world) relay(upstream *rest.Config, deciding []reviews.Option, options ...relay.Option) *inProcess {
	w.t.Helper()
	access, err := reviews.New(upstream, deciding...)
	require.NoError(w.t, err)
	// A test binary does not tell of which release its types are.
	options = append([]relay.Option{relay.WithTypesOf(37), relay.WithLogger(logr.Discard())}, options...)
	r, err := relay.New(upstream, access.Handler, options...)
	require.NoError(w.t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(w.t, err)
	certificate, err := tls.LoadX509KeyPair(w.cluster.Certificate())
	require.NoError(w.t, err)
	web := &http.Server{Handler: r, TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert,
	}}
	served := make(chan error, 1)
	go func() { served <- web.ServeTLS(listener, "", "") }()
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		require.NoError(w.t, r.Shutdown(ctx))
		require.NoError(w.t, web.Close())
		require.ErrorIs(w.t, <-served, http.ErrServerClosed)
	})
	return &inProcess{Relay: r, w: w, address: listener.Addr().String()}
}

// relayOfServer starts a relay of the cluster's API server.
func (w *world) relayOfServer(deciding []reviews.Option, options ...relay.Option) *inProcess {
	w.t.Helper()
	return w.relay(w.cluster.Server.Config(cluster.Agent), deciding, options...)
}

// config is a client's configuration, as that of the API server.
func (r *inProcess) config(token string) *rest.Config {
	return r.w.cluster.Server.ConfigVia(r.address, token)
}

// impatient has the relay see within two seconds that a right has gone, and at once that one has
// come.
func impatient() []reviews.Option {
	return []reviews.Option{reviews.WithRenewal(2 * time.Second), reviews.WithRefusal(0)}
}

// relaySeed is a random seed, or that of TRIBUTARY_RELAY_SEED.
func relaySeed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("TRIBUTARY_RELAY_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "TRIBUTARY_RELAY_SEED")
	}
	t.Logf("seed %d", seed)
	return seed
}
