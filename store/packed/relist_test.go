package packed_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store/packed"
)

// TestProbesAgree: a reflector of bytes compares an object of the server with the one at rest, in
// whatever form both are. It lists again only if they differ.
func TestProbesAgree(t *testing.T) {
	for name, options := range map[string][]listwatch.Option{
		"protobuf": nil, "JSON": {listwatch.WithJSON()}, "decoded": {listwatch.WithMutationDetector(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := listwatchtest.New(t, listwatchtest.Pods())
				for i := range 20 {
					pod := somePod(i, 1)
					pod.ResourceVersion, pod.UID = "", ""
					pods.Create(pod)
				}
				at := packed.New[corev1.Pod]()
				r := reflector.New(pods.ListerWatcher(options...).Encoded(), at.Encoded())
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- r.Run(ctx) }()
				defer func() { stop(); require.NoError(t, <-ended) }()
				time.Sleep(time.Hour)
				require.Equal(t, "map[ok:1]", fmt.Sprint(r.Status().Lists))
				require.NoError(t, r.Status().ProbeErr)

				for _, pod := range at.Snapshot().All() {
					other := pod.DeepCopy()
					other.Spec.NodeName = "another"
					require.NoError(t, at.Add(other))
				}
				time.Sleep(time.Hour)
				require.Equal(t, 1, r.Status().Lists[reflector.Drift])
			})
		})
	}
}
