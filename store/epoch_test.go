package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/store"
)

// TestSnapshotsAtAnyMoment: writes in a row change in place what no snapshot holds, so each
// snapshot of a random history, taken at random moments, must equal the content of its moment for
// ever. The objects are many enough for branches, the values of an index come and go, and one index
// is added on the way.
func TestSnapshotsAtAnyMoment(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 5))
	type moment struct {
		snapshot store.Snapshot[*corev1.Pod]
		objects  map[string]*corev1.Pod
		version  string
		more     bool // the snapshot has the indexes that were added
	}
	for _, objects := range []int{20, 300} {
		x := store.NewIndexer(byNode)
		addIndex := random.IntN(1500)
		held, version := map[string]*corev1.Pod{}, 0
		var history []moment
		for i := range 3000 {
			if i == addIndex {
				x.AddIndexes(byNode, byVersionDigits)
			}
			version++
			p := onNode(pod(fmt.Sprintf("p%d", random.IntN(objects)), version), fmt.Sprintf("n%d", random.IntN(3)))
			key := store.KeyOf(p)
			switch random.IntN(200) {
			case 0:
				maps.DeleteFunc(held, func(string, *corev1.Pod) bool { return random.IntN(3) == 0 })
				held[key] = p
				require.NoError(t, x.Replace(pods(held), store.At(strconv.Itoa(version))))
			case 1: // breaks off
				broken := func(yield func(*corev1.Pod, error) bool) {
					_ = yield(p, nil) && yield(nil, errBroken)
				}
				require.ErrorIs(t, x.Replace(broken, store.At("0")), errBroken)
				version--
			default:
				if random.IntN(3) > 0 {
					c, err := x.Put(p)
					require.NoError(t, err)
					require.Equal(t, store.Change[*corev1.Pod]{Key: key, Old: held[key], New: p}, c)
					held[key] = p
				} else {
					c, err := x.Remove(p)
					require.NoError(t, err)
					require.Equal(t, store.Change[*corev1.Pod]{Key: key, Old: held[key]}, c)
					delete(held, key)
				}
			}
			got, ok := x.Get(key)
			require.Equal(t, held[key], got)
			require.Equal(t, held[key] != nil, ok)
			for range max(0, random.IntN(12)-9) {
				history = append(history, moment{x.Snapshot(), maps.Clone(held), strconv.Itoa(version), i >= addIndex})
			}
		}
		for i, m := range history {
			if i%20 == 0 { // the indexes of the others are compared by what differs
				requireIndex(t, byNode, m.snapshot, func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
				if m.more {
					requireIndex(t, byVersionDigits, m.snapshot, func(p *corev1.Pod) []rune { return []rune(p.ResourceVersion) })
				}
				requireDiff(t, m.snapshot, history[random.IntN(len(history))].snapshot)
			}
			require.Equal(t, m.objects, maps.Collect(m.snapshot.All()))
			require.Equal(t, m.version, m.snapshot.ResourceVersion())
		}
	}
}

var errBroken = fmt.Errorf("the connection broke")

func pods(held map[string]*corev1.Pod) func(func(*corev1.Pod, error) bool) {
	all := make([]*corev1.Pod, 0, len(held))
	for _, p := range held {
		all = append(all, p)
	}
	return store.Items(all...)
}

// TestReadersBesideAWriterInPlace: readers with snapshots and without see whole states, while the
// writer changes nodes in place and relists now and then. Under -race, any node that both touch is
// found.
func TestReadersBesideAWriterInPlace(t *testing.T) {
	const objects, writes = 200, 3000
	x := store.NewIndexer(byNode)
	held := map[string]*corev1.Pod{}
	for i := range objects {
		p := onNode(pod(fmt.Sprint("p", i), 1), "n0")
		held[store.KeyOf(p)] = p
	}
	require.NoError(t, x.Replace(pods(held), store.At("1")))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for r := range 4 {
		readers.Go(func() {
			newest := make([]int, objects) // of each object, as this reader has seen it
			for n := r; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				i := n % objects
				got, ok := x.Get(fmt.Sprint("ns/p", i))
				if !ok {
					t.Errorf("p%d is not there", i)
					return
				}
				version, _ := strconv.Atoi(got.ResourceVersion)
				if version < newest[i] {
					t.Errorf("p%d went back from %d to %d", i, newest[i], version)
					return
				}
				newest[i] = version
				if n%16 != 0 {
					continue
				}
				s := x.Snapshot()
				count := 0
				for p := range byNode.Objects(s, "n1") {
					if held, _ := s.Get(store.KeyOf(p)); held != p {
						t.Errorf("the index has %s at %s, and the objects have %s", p.Name, p.ResourceVersion, held.ResourceVersion)
						return
					}
					count++
				}
				if all := count + byNode.Len(s, "n0"); all != objects || s.Len() != objects {
					t.Errorf("%d of %d objects are in the index", all, s.Len())
					return
				}
			}
		})
	}
	for i := range writes {
		p := onNode(pod(fmt.Sprint("p", i*7%objects), i+2), fmt.Sprintf("n%d", i/objects%2))
		held[store.KeyOf(p)] = p
		require.NoError(t, x.Update(p))
		if i%10 == 0 { // a relist begins from a draft that a reader may just have sealed
			require.NoError(t, x.Replace(pods(held), store.At(p.ResourceVersion)))
		}
	}
	close(done)
	readers.Wait()
}

// newerInTurn are n newer versions of pods, which move none of them, in turn.
func newerInTurn(pods []*corev1.Pod, n int) []*corev1.Pod {
	newer := make([]*corev1.Pod, n)
	for i := range newer {
		p := *pods[i%len(pods)]
		p.ResourceVersion = strconv.Itoa(10_000 + i)
		newer[i] = &p
	}
	return newer
}

// updates writes the next of some pods each time it is called.
func updates(t *testing.T, x *store.Indexer[*corev1.Pod], pods []*corev1.Pod) (update func()) {
	next := 0
	return func() {
		require.NoError(t, x.Update(pods[next]))
		next++
	}
}

// TestWritesInARowChangeInPlace: a write that moves nothing allocates what the functions of its
// indexes return, and no more, until somebody takes a snapshot.
func TestWritesInARowChangeInPlace(t *testing.T) {
	for indexes := range 3 {
		all := benchPods(1000)
		x := ours(all, indexes)
		newer := newerInTurn(all, 4000)
		update := updates(t, x, newer)
		require.LessOrEqual(t, testing.AllocsPerRun(1000, update), float64(indexes), "%d indexes", indexes)
		before := x.Snapshot()
		require.Greater(t, testing.AllocsPerRun(10, update), float64(indexes), "copied once")
		require.Equal(t, newer[1000], func() *corev1.Pod { p, _ := before.Get(store.KeyOf(newer[1000])); return p }())
	}
}

// TestAPanicOfAnIndexLeavesTheContent: a user's function is called before anything is changed.
func TestAPanicOfAnIndexLeavesTheContent(t *testing.T) {
	picky := store.NewIndex("picky", func(p *corev1.Pod) []any {
		if p.Spec.NodeName == "bad" {
			panic("bad node")
		}
		if p.Spec.NodeName == "worse" {
			return []any{[]int{1}} // which cannot be hashed
		}
		return []any{p.Spec.NodeName}
	})
	x := store.NewIndexer(byNode, picky)
	require.NoError(t, x.Add(onNode(pod("a", 1), "n1")))
	for _, node := range []string{"bad", "worse"} {
		require.Panics(t, func() { _ = x.Update(onNode(pod("a", 2), node)) })
		require.Equal(t, "1", x.Snapshot().ResourceVersion())
		require.Equal(t, []string{"a"}, names(byNode, x.Snapshot(), "n1"))
		require.Equal(t, []string{"a"}, names(picky, x.Snapshot(), any("n1")))
	}
	require.NoError(t, x.Update(onNode(pod("a", 3), "n2")))
	require.Equal(t, map[string]int{"n2": 1}, maps.Collect(byNode.Values(x.Snapshot())))
	require.Equal(t, map[any]int{"n2": 1}, maps.Collect(picky.Values(x.Snapshot())))
}

// TestAnIndexMayReadTheStore: no lock that a reader needs is held while a user's function runs.
func TestAnIndexMayReadTheStore(t *testing.T) {
	var x *store.Indexer[*corev1.Pod]
	var seen []int
	curious := store.NewIndex("curious", func(p *corev1.Pod) []string {
		seen = append(seen, x.Snapshot().Len())
		_, _ = x.Get("ns/a")
		return nil
	})
	x = store.NewIndexer(curious)
	require.NoError(t, x.Add(pod("a", 1)))
	require.NoError(t, x.Add(pod("b", 2)))
	require.Equal(t, []int{0, 1}, seen)
}

// TestAnObjectWithSeveralValuesLeavesThem: an index whose objects have had one value each takes a
// short way, which it must leave when an object has two.
func TestAnObjectWithSeveralValuesLeavesThem(t *testing.T) {
	x := store.NewIndexer(byVersionDigits)
	require.NoError(t, x.Add(pod("a", 1)))
	require.NoError(t, x.Update(pod("a", 12)))
	require.NoError(t, x.Update(pod("a", 2)))
	require.Equal(t, map[rune]int{'2': 1}, maps.Collect(byVersionDigits.Values(x.Snapshot())))
	require.NoError(t, x.Replace(store.Items(pod("a", 34)), store.At("34")))
	require.NoError(t, x.Update(pod("a", 4)))
	require.Equal(t, map[rune]int{'4': 1}, maps.Collect(byVersionDigits.Values(x.Snapshot())))
}
