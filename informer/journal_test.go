package informer

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/storetest"
)

// TestJournalConforms also applies the ring's events to a map, and compares the map with the store.
func TestJournalConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Rig {
		j := &journal[*corev1.Pod]{objects: store.NewIndexer[*corev1.Pod](), ring: newSharedRing[*corev1.Pod](64)}
		j.ring.replace(j.Snapshot(), nil, 0) // a whole state without objects
		at, _ := j.ring.begin()
		held := map[string]*corev1.Pod{}
		catchUp := func() {
			events, now, all := j.ring.read(at.next, nil)
			if !all {
				events = nil
				for e := range difference(at.state, now.state) {
					events = append(events, noted[*corev1.Pod]{Event: e})
				}
			}
			at = now
			for _, e := range events {
				if e.Type == Deleted {
					delete(held, e.Key)
				} else {
					held[e.Key] = e.New
				}
			}
		}
		return storetest.Rig{
			Store: j,
			Objects: func() []*corev1.Pod {
				catchUp()
				require.Equal(t, maps.Collect(j.Snapshot().All()), held)
				return slices.Collect(maps.Values(held))
			},
			ResourceVersion: func() string {
				now, _ := j.ring.begin()
				return now.state.ResourceVersion()
			},
		}
	})
}

func TestRingForgets(t *testing.T) {
	r := newSharedRing[*corev1.Pod](4)
	r.readers = math.MaxInt // some reader never catches up: the changes keep their objects
	var none store.Snapshot[*corev1.Pod]
	r.replace(none, nil, 0)
	for n := range uint64(11) {
		for back := uint64(0); back <= n; back++ {
			events, v, all := r.read(n-back, nil)
			require.Equal(t, back <= 4, all, "%d back of %d", back, n)
			require.Equal(t, n, v.next)
			if !all {
				require.Empty(t, events)
				continue
			}
			require.Len(t, events, int(back))
			for k, e := range events {
				require.Equal(t, string('a'+rune(n-back)+rune(k)), e.Key)
			}
		}
		r.add(none, Event[*corev1.Pod]{Key: string('a' + rune(n)), Type: Added})
	}
	r.replace(none, nil, 5)
	_, v, all := r.read(11, nil)
	require.False(t, all, "a list with more differences than the ring holds")
	require.Equal(t, uint64(16), v.next)
}

// TestAnotherUIDIsAnotherObject: another UID under a held key means that a deletion was missed. The
// final state of another object is not that of the held one.
func TestAnotherUIDIsAnotherObject(t *testing.T) {
	j := &journal[*corev1.Pod]{objects: store.NewIndexer[*corev1.Pod](), ring: newSharedRing[*corev1.Pod](8)}
	j.ring.fill()
	_, begun := j.ring.begin() // without a reader, changes release their objects
	require.True(t, begun)
	first, second, third := storetest.Pod("a", 1), storetest.Pod("a", 5), storetest.Pod("a", 9)
	second.UID, third.UID = "second", "third"
	require.NoError(t, j.Add(first))
	require.NoError(t, j.Update(second))
	require.NoError(t, j.Delete(third))
	told, _, _ := j.ring.read(0, nil)
	var events []Event[*corev1.Pod]
	for _, n := range told {
		events = append(events, n.Event)
	}
	require.Equal(t, []Event[*corev1.Pod]{
		{Key: "ns/a", New: first, Type: Added},
		{Key: "ns/a", Old: first, Type: Deleted, Missed: true},
		{Key: "ns/a", New: second, Type: Added},
		{Key: "ns/a", Old: second, Type: Deleted, Missed: true},
	}, events)
}
