package connection_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func restClient(t testing.TB, config *rest.Config) rest.Interface {
	t.Helper()
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
	require.NoError(t, err)
	// client-go forgets the connections of a config that no client uses any more.
	t.Cleanup(func() { runtime.KeepAlive(client) })
	return client
}
