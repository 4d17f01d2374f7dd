package apiserver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
)

// BenchmarkList is a list of 1000 pods over HTTP, read to the end.
func BenchmarkList(b *testing.B) {
	s, err := apiserver.NewServer()
	require.NoError(b, err)
	pods := apiserver.Serve(s, builtin.Pods())
	for i := range 1000 {
		_, err := pods.Create(realistic(i))
		require.NoError(b, err)
	}
	listener := httptest.NewServer(s)
	defer listener.Close()
	const meta = ";g=meta.k8s.io;v=v1"
	for name, accept := range map[string]string{
		"json": wireJSON, "protobuf": wireProtobuf,
		"table": wireJSON + ";as=Table" + meta, "metadata": wireProtobuf + ";as=PartialObjectMetadataList" + meta,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.SetBytes(download(b, listener.URL+"/api/v1/pods", accept))
			}
		})
	}
	b.Run("protobuf of one node", func(b *testing.B) {
		for b.Loop() {
			download(b, listener.URL+"/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-7", wireProtobuf)
		}
	})
}

func download(b *testing.B, url, accept string) int64 {
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	require.NoError(b, err)
	request.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(b, err)
	defer answer.Body.Close()
	size, err := io.Copy(io.Discard, answer.Body)
	require.NoError(b, err)
	return size
}

// realistic is a pod of the usual size, on one of 50 nodes.
func realistic(i int) *corev1.Pod {
	p := pod(fmt.Sprintf("web-%d", i), onNode(fmt.Sprintf("node-%d", i%50)), labelled("app", "web"))
	c := &p.Spec.Containers[0]
	for j := range 10 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", j), Value: "value"})
	}
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	p.Status.Phase = corev1.PodRunning
	return p
}

// BenchmarkListsAtOnce is 100 lists of 10,000 pods at once, with encodings that are shared and with
// encodings that each list makes anew. There is no network: what is measured is the server's part.
func BenchmarkListsAtOnce(b *testing.B) {
	const pods, clients = 10_000, 100
	for _, row := range []struct {
		name  string
		bytes int64
	}{{"anew", 0}, {"shared", 128 << 20}} {
		s, err := apiserver.NewServer(watchcache.WithListBytes(row.bytes))
		require.NoError(b, err)
		collection := apiserver.Serve(s, builtin.Pods())
		for i := range pods {
			_, err := collection.Create(realistic(i))
			require.NoError(b, err)
		}
		for _, accept := range []string{wireJSON, wireProtobuf} {
			b.Run(strings.TrimPrefix(accept, "application/")+"/"+row.name, func(b *testing.B) {
				for b.Loop() {
					var lists sync.WaitGroup
					for range clients {
						lists.Go(func() {
							request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "/api/v1/pods", nil)
							if err != nil {
								panic(err)
							}
							request.Header.Set("Accept", accept)
							s.ServeHTTP(discard{}, request)
						})
					}
					lists.Wait()
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/1e3/float64(b.N)/clients, "ms/list")
			})
		}
	}
}
