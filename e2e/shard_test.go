package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/e2e/cluster"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
)

// TestShards: three replicas divide the pods, as Kubernetes' own selector divides them, on a server
// that shards and on one that does not. Only what they receive differs.
func TestShards(t *testing.T) {
	t.Parallel()
	const count, pods = 3, 300
	c := cluster.Start(t, "--feature-gates=ShardedListAndWatch=true")
	plain := c.AddServer(c.Etcd.URL())
	w := newWorld(t, c)
	w.fill(pods)
	result := table("server", "part", "objects", "received")
	of := func(name string, config *rest.Config) (received uint64) {
		client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion)
		require.NoError(t, err)
		var parts [count]*informer.Informer[*corev1.Pod]
		for i := range parts {
			parts[i] = informer.New(listwatch.FromClient[corev1.Pod](client, "pods", listwatch.Shard(i, count)))
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- parts[i].Run(ctx) }()
			defer func() {
				cancel()
				require.NoError(t, <-ended)
			}()
			require.NoError(t, parts[i].WaitSynced(t.Context()))
		}
		w.each(pods, w.annotate)
		require.Eventually(t, func() bool {
			for i := range parts {
				if parts[i].Status().Events < parts[i].Status().Objects {
					return false
				}
			}
			return true
		}, 30*time.Second, 10*time.Millisecond)
		total := 0
		for i, part := range parts {
			bounds := [count + 1]string{"0x0000000000000000", "0x5555555555555555", "0xaaaaaaaaaaaaaaaa", "0x10000000000000000"}
			selector := sharding.NewSelector(sharding.ShardRangeRequirement{Key: "object.metadata.uid", Start: bounds[i], End: bounds[i+1]})
			for _, obj := range part.Snapshot().Sorted() {
				matches, err := selector.Matches(obj)
				require.NoError(t, err)
				require.True(t, matches, "part %d has %s", i, obj.UID)
			}
			s := part.Status()
			require.Equal(t, map[reflector.Class]int{reflector.OK: 1}, s.Lists)
			require.NoError(t, s.Verdict(time.Minute).Err)
			result.add(name, i, s.Objects, fmt.Sprintf("%d KB", s.Sharing.Bytes/1000))
			total, received = total+s.Objects, received+s.Sharing.Bytes
		}
		require.Equal(t, pods, total)
		return received
	}
	sharded := of("shards", c.Server.Config(cluster.Admin))
	all := of("does not", plain.Config(cluster.Admin))
	t.Log(result)
	require.InDelta(t, 1.0/count, float64(sharded)/float64(all), 0.05)
}
