package listwatch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/store"
)

// TestAProjectedListYieldsEachHeldObjectOnce: held objects wait behind a new one that is still
// decoded, each for its turn. Two projections in a row do, too.
func TestAProjectedListYieldsEachHeldObjectOnce(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	copied := func(p *corev1.Pod) *corev1.Pod { out := *p; return &out }
	for _, projections := range []int{1, 2} {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		source := pods.ListerWatcher()
		for range projections {
			source = listwatch.Project(source, copied, listwatch.ReadOnly())
		}
		held := map[string]*corev1.Pod{}
		reader := source.Holding(func(key string) (*corev1.Pod, bool) { obj, ok := held[key]; return obj, ok })
		for range 20 {
			for range 1 + random.IntN(10) {
				name := fmt.Sprint(random.Uint32()) // anywhere in the order of names
				pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
			}
			before, count := held, 0
			next := map[string]*corev1.Pod{}
			for obj, err := range reader.List(t.Context(), metav1.ListOptions{}).Items {
				require.NoError(t, err)
				key := store.KeyOf(obj)
				require.NotContains(t, next, key, "yielded twice")
				if old := before[key]; old != nil {
					require.Same(t, old, obj, "a held object is the result")
				}
				next[key] = obj
				count++
			}
			require.Equal(t, pods.Origin().Cache().Snapshot().Len(), count)
			held = next
		}
	}
}
