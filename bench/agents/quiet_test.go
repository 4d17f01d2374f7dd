package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver"
)

// pipes is a network within a bubble.
type pipes struct {
	accepts chan net.Conn
	closed  chan struct{}
	close   func()
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepts:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.accepts <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestAQuietDay counts the requests of 24 simulated hours on which nothing happens.
func TestAQuietDay(t *testing.T) {
	perHour := map[string]float64{}
	for _, library := range []string{tributary, clientGo} {
		synctest.Test(t, func(t *testing.T) {
			p := &pipes{accepts: make(chan net.Conn), closed: make(chan struct{})}
			p.close = sync.OnceFunc(func() { close(p.closed) })
			api, err := apiserver.NewServer()
			require.NoError(t, err)
			_, err = apiserver.Serve(api, watchcache.Pods()).Create(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
				Spec:       corev1.PodSpec{NodeName: nodeName(0), Containers: []corev1.Container{{Name: "main", Image: "image"}}},
			})
			require.NoError(t, err)
			var requests atomic.Int64
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				api.ServeHTTP(w, r)
			})}
			go func() { _ = server.Serve(p) }()
			config := configOf("http://api")
			transport := &http.Transport{DialContext: p.dial}
			config.Transport = transport
			ctx, cancel := context.WithCancel(t.Context())
			ended, synced := make(chan error, 1), make(chan struct{})
			go func() { ended <- follow(ctx, library, config, nodeName(0), func() { close(synced) }) }()
			<-synced
			time.Sleep(time.Minute)
			requests.Store(0)
			time.Sleep(24 * time.Hour)
			perHour[library] = float64(requests.Load()) / 24
			cancel()
			require.NoError(t, <-ended)
			api.Close()
			require.NoError(t, server.Close())
			transport.CloseIdleConnections()
		})
	}
	fmt.Printf("requests an hour, if nothing happens: %v\n", perHour)
	require.LessOrEqual(t, perHour[tributary], 2.0)
	require.Positive(t, perHour[tributary])
}
