// Package relayed has a test binary stand in for the command `tributary relay`, so that a relay is a
// process of its own, which can be killed and stopped:
//
//	func TestMain(m *testing.M) {
//		relayed.Main()
//		…
//	}
//
//	relay := c.StartRelay(relayed.Binary(t), upstream)
package relayed

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/server/relay"
	"github.com/tributary-go/tributary/server/reviews"
)

// Binary is the path of the running test binary.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

// Main is the program, if the test binary was started as it.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != "relay" {
		return
	}
	if err := run(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(arguments []string) error {
	flags := flag.NewFlagSet("relay", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "")
	address := flags.String("listen", "", "")
	certificate, key := flags.String("tls-cert-file", "", ""), flags.String("tls-private-key-file", "", "")
	clientCA := flags.String("client-ca-file", "", "")
	renewal := flags.Duration("renew", time.Minute, "")
	hold := flags.Duration("hold", 10*time.Minute, "")
	data := flags.String("data", "", "")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	deciding := []reviews.Option{reviews.WithRenewal(*renewal), reviews.WithHold(*hold)}
	if *clientCA != "" {
		deciding = append(deciding, reviews.WithClientCA(*clientCA))
	}
	access, err := reviews.New(config, deciding...)
	if err != nil {
		return err
	}
	options := []relay.Option{relay.WithTypesOf(37)} // a test binary does not tell
	if *data != "" {
		options = append(options, relay.WithJournals(*data))
	}
	handler, err := relay.New(config, access.Handler, options...)
	if err != nil {
		return err
	}
	web := &http.Server{Addr: *address, Handler: handler, TLSConfig: &tls.Config{ClientAuth: tls.RequestClientCert}}
	over, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- web.ListenAndServeTLS(*certificate, *key) }()
	select {
	case err := <-served:
		return err
	case <-over.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(handler.Shutdown(ctx), web.Shutdown(ctx))
}
