package sharing

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// of makes a memo of a kind that no other test has.
func of(t *testing.T, k Kind) *Memo {
	t.Helper()
	k.Type, k.Resource = reflect.TypeFor[corev1.ConfigMap](), t.Name()+k.Resource
	m, err := Of(k)
	require.NoError(t, err)
	m.early.Store(0)
	return m
}

// TestTheFirstObjectsOfAKindAreDecodedPlainly: a kind that has few objects remembers nothing, and
// has nothing to remember it with. More states of the same objects change nothing.
func TestTheFirstObjectsOfAKindAreDecodedPlainly(t *testing.T) {
	m := of(t, Kind{})
	m.early.Store(int64(FirstBytes))
	data, err := configMap(0).Marshal()
	require.NoError(t, err)
	data = append(data, make([]byte, 0)...)
	for range 2 * FirstBytes / len(data) {
		_, err := m.UnmarshalAfter(Last{Changes: true}, data, &corev1.ConfigMap{})
		require.NoError(t, err)
	}
	for range FirstBytes / len(data) {
		require.Equal(t, configMap(0), decode(t, m, configMap(0)))
	}
	require.Empty(t, m.plans)
	require.Len(t, m.sites, 1, "of unstructured objects")
	require.False(t, share(decode(t, m, configMap(0)), decode(t, m, configMap(0))), "the last one")
	require.True(t, share(decode(t, m, configMap(0)), decode(t, m, configMap(1))))
	require.NotEmpty(t, m.plans)
}

func TestCollectionsOfAKindShare(t *testing.T) {
	first, second := of(t, Kind{}), of(t, Kind{})
	require.True(t, share(decode(t, first, configMap(0)), decode(t, second, configMap(1))))
	for name, other := range map[string]*Memo{"another resource": of(t, Kind{Resource: "s"}), "another scope": of(t, Kind{Scope: new(byte)}), "without managedFields": of(t, Kind{Drop: true})} {
		require.False(t, share(decode(t, first, configMap(0)), decode(t, other, configMap(1))), name)
	}
	require.NotZero(t, first.Stats().Bytes)
	require.Equal(t, first.Stats().Entries, second.Stats().Entries, "of both")
	require.NotEqual(t, first.Stats().Lookups, second.Stats().Lookups, "of each")
}

// TestADoubtIsAboutAllCollectionsOfAKind: a reader of one may have written into the objects of
// another one.
func TestADoubtIsAboutAllCollectionsOfAKind(t *testing.T) {
	first, second := of(t, Kind{}), of(t, Kind{})
	written := decode(t, first, configMap(0))
	for key := range written.Data {
		written.Data[key] = "against the rule"
	}
	second.Doubt()
	decode(t, first, configMap(1))
}

// TestAKindIsAsLargeAsItsCollections: the bounds follow the collections, and the kind goes with the
// last of them.
func TestAKindIsAsLargeAsItsCollections(t *testing.T) {
	first, second := of(t, Kind{}), of(t, Kind{})
	first.Listed(3000, 4<<20)
	second.Listed(5000, 8<<20)
	require.EqualValues(t, 2*8000, first.longest.Load())
	require.EqualValues(t, 12<<20/8, first.most.Load())
	first.Listed(3500, 4<<20)
	require.EqualValues(t, 2*8500, first.longest.Load())
	collected := func(gone func() bool) {
		t.Helper()
		require.Eventually(t, func() bool { runtime.GC(); return gone() }, time.Minute, time.Millisecond)
	}
	runtime.KeepAlive(second)
	second = nil
	collected(func() bool { return first.longest.Load() == 2*3500 })
	held := Kind{Type: reflect.TypeFor[corev1.ConfigMap](), Resource: t.Name()}
	known := func() bool { return slices.Contains(kinds.Keys(), held) }
	require.True(t, known())
	runtime.KeepAlive(first)
	first = nil
	collected(func() bool { return !known() })
}

// TestNoDecoderWaitsForAnother: while others keep values of all fields, an object is decoded, and
// its own are not kept.
func TestNoDecoderWaitsForAnother(t *testing.T) {
	m := testMemo(t, defaultLimits)
	decode(t, m, configMap(0))
	for _, s := range m.sites {
		s.mu.Lock()
	}
	first := decode(t, m, configMap(100))
	for _, s := range m.sites {
		s.mu.Unlock()
	}
	second := decode(t, m.join(), configMap(100))
	require.True(t, share(first, second), "the decoder has it all the same")
}

// TestManyCollectionsDecodeAtOnce: with generations that end all the time, each object is right.
func TestManyCollectionsDecodeAtOnce(t *testing.T) {
	m := testMemo(t, bounded(50, 4<<10, 1<<20))
	var running sync.WaitGroup
	for g := range 50 {
		memo := m.join()
		running.Go(func() {
			for i := range 100 {
				data, _ := configMap(i).Marshal()
				out := &corev1.ConfigMap{}
				if err := memo.Unmarshal(data, out); err != nil || out.Data["set"] != configMap(i).Data["set"] {
					t.Errorf("collection %d: %v, %v", g, err, out.Data)
				}
				text := fmt.Appendf(nil, `{"metadata":{"name":"n"},"data":{"set":"a text longer than a key, number %d"}}`, i/10)
				tree, err := memo.UnmarshalTree(text)
				if err != nil || tree["data"].(map[string]any)["set"] != configMap(i).Data["set"] {
					t.Errorf("collection %d: %v, %v", g, err, tree)
				}
			}
		})
	}
	running.Wait()
	entries, bytes := m.count()
	require.Equal(t, entries, m.Stats().Entries)
	require.Equal(t, bytes, m.Stats().Held)
	require.Zero(t, m.decoding.Load())
	data, _ := configMap(0).Marshal()
	require.NoError(t, m.Unmarshal(data, &corev1.ConfigMap{}))
	require.EqualValues(t, len(data), m.Stats().Bytes, "of this collection alone")
}
