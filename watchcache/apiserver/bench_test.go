package apiserver_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tributary-go/tributary/watchcache"
	"github.com/tributary-go/tributary/watchcache/apiserver"
)

// BenchmarkList is a list of 1000 pods over HTTP, read to the end.
func BenchmarkList(b *testing.B) {
	s, err := apiserver.NewServer()
	require.NoError(b, err)
	pods := apiserver.Serve(s, watchcache.Pods())
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
