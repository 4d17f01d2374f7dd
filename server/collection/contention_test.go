package collection_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/collection"
)

// TestPatchesWithoutAVersionNeverConflict: 16 writers make 20 patches each of one object. A patch
// that names no version is made on the newest state, exactly once.
func TestPatchesWithoutAVersionNeverConflict(t *testing.T) {
	const writers, rounds = 16, 20
	for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType} {
		t.Run(string(kind), func(t *testing.T) {
			pods := newPods(t)
			_, err := pods.With(collection.WriteOptions{}).Create(pod("a"))
			require.NoError(t, err)
			var changes atomic.Int64
			pods.OnChange(func(listwatch.Event[*corev1.Pod]) { changes.Add(1) })
			errs := make(chan error, writers*rounds)
			var writing sync.WaitGroup
			for w := range writers {
				writing.Go(func() {
					client := pods.With(collection.WriteOptions{Manager: fmt.Sprint("writer-", w)})
					for round := range rounds {
						patch := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"annotations":{"writer-%d":"%d"}}}`, "a", w, round)
						if kind == types.ApplyYAMLPatchType {
							_, _, err := client.Apply("ns", "a", patch, false)
							errs <- err
							continue
						}
						_, err := client.Patch("ns", "a", kind, patch, "")
						errs <- err
					}
				})
			}
			writing.Wait()
			for range writers * rounds {
				require.NoError(t, <-errs)
			}
			require.EqualValues(t, writers*rounds, changes.Load())
			patched, err := pods.Get("ns", "a")
			require.NoError(t, err)
			require.Len(t, patched.Annotations, writers)
			for writer, last := range patched.Annotations {
				require.Equal(t, fmt.Sprint(rounds-1), last, writer)
			}
		})
	}
}
