package sources_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tributary-go/tributary/sources"
)

// TestNilIsNamed: what is missing ends Run at once, whatever other sources there are, and is an error of Add.
func TestNilIsNamed(t *testing.T) {
	for want, option := range map[string]sources.Option{
		"sources: APIServer was given no client (<nil>)":            sources.APIServer(nil),
		"sources: APIServer was given no client (*rest.RESTClient)": sources.APIServer(fake.NewClientset().CoreV1().RESTClient()),
		"sources: With: the source is nil":                          sources.With(nil),
		"sources: From: the reader is nil":                          sources.From(nil),
	} {
		require.ErrorContains(t, sources.New("node-1", sources.File(t.TempDir()), option).Run(t.Context()), want)
		require.ErrorContains(t, sources.New("node-1", sources.Named("other", option)).Run(t.Context()), want)
		require.ErrorContains(t, sources.New("node-1").Add(option), want)
	}
}
