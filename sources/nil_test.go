package sources_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tributary-go/tributary/sources"
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
