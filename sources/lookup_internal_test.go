package sources

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/store"
)

// states are two states of 110 pods that differ in one.
func states(t testing.TB) (one, two Pods) {
	var all store.Indexer[*corev1.Pod]
	for i := range 110 {
		pod := podNamed(fmt.Sprint("p", i), "v1")
		pod.UID = types.UID(fmt.Sprintf("%032x", i))
		require.NoError(t, all.Add(pod))
	}
	one = all.Snapshot()
	changed := podNamed("p0", "v2")
	changed.UID = types.UID(fmt.Sprintf("%032x", 0))
	require.NoError(t, all.Update(changed))
	return one, all.Snapshot()
}

// TestStatesCostNothingWithoutLookups: tables are made by the first look-up, and kept from then on;
// with KeepEnded, from the beginning.
func TestStatesCostNothingWithoutLookups(t *testing.T) {
	one, two := states(t)
	s := New("node-1", Custom(&instant{handed{name: "a"}}))
	f := s.list()[0]
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.lookup.set(s.list(), f, one)
		s.lookup.set(s.list(), f, two)
	}))
	require.Nil(t, s.lookup.now.Load())
	require.Equal(t, "p0", s.ByUID(types.UID(fmt.Sprintf("%032x", 0))).Pod.Name)
	s.lookup.set(s.list(), f, Pods{})
	require.Nil(t, s.ByUID(types.UID(fmt.Sprintf("%032x", 0))))

	kept := New("node-1", Custom(&instant{handed{name: "a"}}), KeepEnded(time.Minute))
	f = kept.list()[0]
	kept.lookup.set(kept.list(), f, one)
	kept.lookup.set(kept.list(), f, Pods{})
	require.False(t, kept.ByUID(types.UID(fmt.Sprintf("%032x", 7))).Ended.IsZero(), "it ended before the first look-up")
}

// BenchmarkSet is what a state costs in which one pod of 110 has changed.
func BenchmarkSet(b *testing.B) {
	one, two := states(b)
	for _, lookups := range []bool{false, true} {
		b.Run(fmt.Sprintf("lookups=%t", lookups), func(b *testing.B) {
			s := New("node-1", Custom(&instant{handed{name: "a"}}))
			f := s.list()[0]
			if lookups {
				s.ByUID("")
			}
			b.ReportAllocs()
			for b.Loop() {
				s.lookup.set(s.list(), f, one)
				s.lookup.set(s.list(), f, two)
			}
		})
	}
}
