package http2_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
	"golang.org/x/sync/errgroup"

	"github.com/tributary-go/tributary/watchcache/apiserver"
)

// TestH2SpecFindsNothingNew: of the cases of h2spec, a server with ConfigureHTTP2 fails those that
// the same server fails without it, in the same way. Streams that are parked are not among them:
// h2spec's window for a connection is too small.
func TestH2SpecFindsNothingNew(t *testing.T) {
	usual, cases := failures(t, func(*http.Server) error { return nil })
	ours, _ := failures(t, apiserver.ConfigureHTTP2)
	t.Logf("of %d cases, both fail: %v", cases, usual)
	require.Greater(t, cases, 100)
	require.Equal(t, usual, ours)
}

// failures are the cases that a server fails, each with what was wrong, and how many cases there are.
func failures(t *testing.T, configure func(*http.Server) error) (failed map[string]string, cases int) {
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	listener := httptest.NewUnstartedServer(server)
	listener.EnableHTTP2 = true
	listener.Config.ErrorLog = log.New(io.Discard, "", 0)
	listener.Config.HTTP2 = &http.HTTP2Config{MaxReadFrameSize: 16 << 10} // as ConfigureHTTP2 has it
	require.NoError(t, configure(listener.Config))
	listener.StartTLS()
	defer listener.Close()
	defer server.Close()
	host, port, err := net.SplitHostPort(listener.Listener.Addr().String())
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	c := &config.Config{
		Host: host, Port: number, Path: "/healthz", Timeout: 2 * time.Second, MaxHeaderLen: 4000,
		TLS: true, Insecure: true, Strict: true,
	}
	failed = map[string]string{}
	var mu sync.Mutex // guards failed
	var running errgroup.Group
	running.SetLimit(16) // most of the time they wait
	var walk func(group *spec.TestGroup)
	walk = func(group *spec.TestGroup) {
		for i, test := range append(group.Tests, group.StrictTests...) {
			cases++
			running.Go(func() error {
				connection, err := spec.Dial(c)
				if err != nil {
					return err
				}
				defer connection.Close()
				if err := test.Run(c, connection); err != nil && err != spec.ErrSkipped {
					mu.Lock()
					defer mu.Unlock()
					failed[fmt.Sprintf("%s/%d %s", group.ID(), i+1, test.Desc)] = err.Error()
				}
				return nil
			})
		}
		for _, inner := range group.Groups {
			walk(inner)
		}
	}
	for _, group := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		walk(group)
	}
	require.NoError(t, running.Wait())
	return failed, cases
}
