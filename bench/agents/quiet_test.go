package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/bench/cluster"
	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/internal/pipes"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/sources/static"
)

// TestAQuietDay counts the requests of 24 simulated hours on which nothing happens: a probe each
// minute proves a copy of the API server's pods, and the kubelet is polled.
func TestAQuietDay(t *testing.T) {
	perHour := map[string]float64{}
	for _, library := range []string{tributary, seldom, kubelet, clientGo} {
		synctest.Test(t, func(t *testing.T) {
			network := pipes.New()
			api, err := apiserver.NewServer()
			require.NoError(t, err)
			_, err = apiserver.Serve(api, builtin.Pods()).Create(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
				Spec:       corev1.PodSpec{NodeName: cluster.Node(0), Containers: []corev1.Container{{Name: "main", Image: "image"}}},
			})
			require.NoError(t, err)
			var requests atomic.Int64
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if r.URL.Path == cluster.KubeletPath {
					_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[]}`)
					return
				}
				api.ServeHTTP(w, r)
			})}
			go func() { _ = server.Serve(network) }()
			config := harness.Config("http://api")
			transport := &http.Transport{DialContext: network.Dial}
			config.Transport = transport
			ctx, cancel := context.WithCancel(t.Context())
			ended, synced := make(chan error, 1), make(chan struct{})
			go func() {
				ended <- harness.Try(func() {
					if library == kubelet {
						followKubelet(ctx, config.Host, cluster.Node(0), func() { close(synced) }, static.WithTransport(transport))
						return
					}
					follow(ctx, library, config, cluster.Node(0), func() { close(synced) })
				})
			}()
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
	require.InDelta(t, 64, perHour[tributary], 4, "a probe each minute, and the ends of watches")
	require.InDelta(t, 5.5, perHour[seldom], 2)
	require.InDelta(t, 180, perHour[kubelet], 5, "a poll each 20 seconds")
}
