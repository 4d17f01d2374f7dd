package sources_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/static"
)

// TestNilIsNamed: what is missing ends Run at once, whatever other sources there are, and is an
// error of Add.
func TestNilIsNamed(t *testing.T) {
	for want, input := range map[string]sources.Input{
		"sources: APIServer was given no client (<nil>)":            sources.APIServer(nil),
		"sources: APIServer was given no client (*rest.RESTClient)": sources.APIServer(fake.NewClientset().CoreV1().RESTClient()),
		"sources: Custom: the source is nil":                        sources.Custom(nil),
		"sources: From: the reader is nil":                          sources.From(nil),
	} {
		require.ErrorContains(t, sources.New("node-1", sources.File(t.TempDir()), input).Run(t.Context()), want)
		require.ErrorContains(t, sources.New("node-1", input.Named("other")).Run(t.Context()), want)
		require.ErrorContains(t, sources.New("node-1").Add(input), want)
	}
}

// TestAnUnknownRelease: it ends Run at once, and the text names the releases.
func TestAnUnknownRelease(t *testing.T) {
	for _, version := range []string{"", "1.35", "v1.39.0"} {
		err := sources.New("node-1", sources.File(t.TempDir()), sources.WithRelease(version)).Run(t.Context())
		require.ErrorContains(t, err, `sources: WithRelease: "`+version+`" is no version of a kubelet that is followed: 1.36, 1.37, 1.38`)
	}
}

// TestBadOptionsOfASource: they end Run at once and are an error of Add, before anything is read.
func TestBadOptionsOfASource(t *testing.T) {
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: "http://localhost:1"})
	require.NoError(t, err)
	for want, input := range map[string]sources.Input{
		"sources: APIServer: reflector: WithLiveness(0s)": sources.APIServer(clients.CoreV1().RESTClient(), reflector.WithLiveness(0)),
		"sources: File: WithInterval(0s)":                 sources.File(t.TempDir(), static.WithInterval(0)),
		"sources: HTTP: WithTimeout(-1s)":                 sources.HTTP("http://localhost:1", static.WithTimeout(-time.Second)),
		"sources: Kubelet: WithTransport(nil)":            sources.Kubelet("http://localhost:1", static.WithTransport(nil)),
	} {
		require.ErrorContains(t, sources.New("node-1", sources.File(t.TempDir()), input).Run(t.Context()), want)
		require.ErrorContains(t, sources.New("node-1").Add(input), want)
	}
}
