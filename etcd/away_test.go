package etcd_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestWritesWithoutEtcd: a write while etcd is away is a 503 that says since when and that nothing
// was written, soon; the status says so, too. Writes go on when etcd is back.
func TestWritesWithoutEtcd(t *testing.T) {
	server := start(t)
	config := server.Config()
	c, _ := serve(t, connect(t, clientv3.Config{}, server), pods)
	_, err := c.Create(pod("before"))
	require.NoError(t, err)

	server.Close()
	for attempt, bound := range []time.Duration{6 * time.Second, time.Second} {
		began := time.Now()
		_, err := c.Create(pod(fmt.Sprint("lost-", attempt)))
		require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
		require.ErrorContains(t, err, "nothing was written")
		require.Less(t, time.Since(began), bound)
	}
	require.Error(t, c.Status().Err)
	require.False(t, c.Cache().Proof().Since.IsZero())

	again := run(t, &config)
	<-again.Server.ReadyNotify()
	require.Eventually(t, func() bool {
		_, err := c.Create(pod("after"))
		return err == nil
	}, patience, 10*time.Millisecond)
}

// TestWritesWithoutSpace: an etcd that has no space left refuses writes. The 503 says what to do.
func TestWritesWithoutSpace(t *testing.T) {
	server := start(t, func(config *embed.Config) {
		config.QuotaBackendBytes = 1 << 20
		config.BackendBatchInterval = time.Millisecond // the quota counts bytes in the file
	})
	c, _ := serve(t, connect(t, clientv3.Config{}, server), pods)
	large := pod("large")
	large.Annotations = map[string]string{"text": strings.Repeat("x", 200<<10)}
	var err error
	for i := 0; err == nil && i < 500; i++ {
		large.Name = fmt.Sprint("large-", i)
		_, err = c.Create(large)
	}
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	require.ErrorContains(t, err, "database space exceeded")
	require.ErrorContains(t, err, "etcdctl alarm disarm")
	var status apierrors.APIStatus
	require.True(t, errors.As(err, &status))
	require.NotContains(t, status.Status().Message, "xxx")
}
