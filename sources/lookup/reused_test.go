package lookup_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/sources"
)

func startedAt(second int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = ptr.To(metav1.Unix(second, 0)) }
}

func stops(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Unix(1_900_000_000, 0)) }

// TestAnAddressThatIsUsedAgain: the pod that stops still has it in its status.
func TestAnAddressThatIsUsedAgain(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.7")
	for name, pods := range map[string][]*corev1.Pod{ // in the order in which they count
		"one stops": {
			podOf("new", address("10.0.0.7"), startedAt(1)),
			podOf("old", address("10.0.0.7"), startedAt(2), stops),
			podOf("over", address("10.0.0.7"), startedAt(3), phase(corev1.PodSucceeded)),
		},
		"one started later": {
			podOf("new", address("10.0.0.7"), startedAt(20)),
			podOf("old", address("10.0.0.7"), startedAt(10)),
			podOf("first", address("10.0.0.7"), created(5)),
		},
		"both stop": {
			podOf("new", address("10.0.0.7"), startedAt(20), stops),
			podOf("old", address("10.0.0.7"), startedAt(10), stops),
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // a state is taken in in any order
				source := newScripted(sources.APISource)
				r := start(t, nil, sources.Custom(source))
				for i := range pods {
					source.set(t, pods[i:]...)
					require.Equal(t, pods[i].Name, nameOf(r.ByIP(ip)), i)
					source.set(t, pods...)
					require.Equal(t, pods[0].Name, nameOf(r.ByIP(ip)), i)
				}
			}
		})
	}
	t.Run("one begins to stop", func(t *testing.T) {
		source := newScripted(sources.APISource)
		r := start(t, nil, sources.Custom(source))
		for i := range 10 {
			old, now := podOf(fmt.Sprint("p", i), address("10.0.0.7"), startedAt(7)), podOf(fmt.Sprint("p", i+1), address("10.0.0.7"), startedAt(7))
			source.set(t, old)
			source.set(t, old, now)
			old = old.DeepCopy()
			stops(old)
			source.set(t, old, now)
			require.Equal(t, now.Name, nameOf(r.ByIP(ip)))
		}
	})
}
