package trie

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// hashes are the real one and three bad ones, so that every depth and the lists of collisions are
// exercised.
var hashes = map[string]func(int) uint64{
	"real":        Hash[int],
	"six bits":    func(k int) uint64 { return Hash(k) & 0x3f },
	"top bits":    func(k int) uint64 { return Hash(k) &^ (1<<55 - 1) },
	"all collide": func(int) uint64 { return 7 },
}

// edit is a transaction on a Map, under an owner or, where it has none, by single writes.
type edit[K comparable, V any] struct {
	Map[K, V]
	w Writer[K, V]
}

func (e *edit[K, V]) set(key K, value V) (old V, had bool) {
	e.Map, old, had = e.w.Set(e.Map, e.w.Hash(key), key, value)
	return old, had
}

func (e *edit[K, V]) delete(key K) (V, bool) {
	now, old, had := e.w.Delete(e.Map, e.w.Hash(key), key)
	e.Map = now
	return old.Value, had
}

func begin[K comparable, V any]() *edit[K, V] {
	return &edit[K, V]{w: Writer[K, V]{Hash: Hash[K], Owner: NewOwner()}}
}

// underEachHash runs a test with random choices, of which it prints the seed.
func underEachHash(t *testing.T, test func(t *testing.T, hash func(int) uint64, r *rand.Rand)) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			test(t, hash, rand.New(rand.NewPCG(seed, 1)))
		})
	}
}

func contents(m Map[int, int]) map[int]int { return maps.Collect(m.All()) }

// TestModel drives a Map and a plain map through the same random edits, keeps every version, and
// compares versions, structure and differences with what the plain maps say.
func TestModel(t *testing.T) {
	underEachHash(t, func(t *testing.T, hash func(int) uint64, r *rand.Rand) {
		type version struct {
			m    Map[int, int]
			want map[int]int
		}
		versions := []version{{want: map[int]int{}}}
		for range 150 {
			base := versions[r.IntN(len(versions))]
			e, want := &edit[int, int]{base.m, Writer[int, int]{Hash: hash}}, maps.Clone(base.want)
			if r.IntN(2) == 0 {
				e.w.Owner = NewOwner()
			}
			for range r.IntN(60) {
				randomEdit(t, r, e, want)
			}
			m := e.Map
			require.NoError(t, m.Check(hash))
			requireDiff(t, base.m, m)
			requireDiff(t, m, versions[r.IntN(len(versions))].m)
			versions = append(versions, version{m, want})
		}
		for _, v := range versions {
			require.NoError(t, v.m.Check(hash))
			require.Equal(t, v.want, contents(v.m))
		}
	})
}

func randomEdit(t *testing.T, r *rand.Rand, e *edit[int, int], want map[int]int) {
	key := r.IntN(200)
	before, was := want[key]
	var old int
	var had bool
	if r.IntN(5) < 3 {
		value := r.IntN(4)
		old, had = e.set(key, value)
		want[key] = value
	} else {
		old, had = e.delete(key)
		delete(want, key)
	}
	require.Equal(t, was, had)
	require.Equal(t, before, old)
	require.Equal(t, len(want), e.Len())
	got, ok := e.Get(e.w.Hash(key), key)
	value, there := want[key]
	require.Equal(t, there, ok)
	require.Equal(t, value, got)
}

// requireDiff computes the difference a second, naive way.
func requireDiff(t *testing.T, before, after Map[int, int]) {
	t.Helper()
	want := map[int]Change[int, int]{}
	a, b := contents(before), contents(after)
	for k, v := range a {
		if now, ok := b[k]; !ok {
			want[k] = Change[int, int]{Key: k, Old: v, HadOld: true}
		} else if now != v {
			want[k] = Change[int, int]{Key: k, Old: v, New: now, HadOld: true, HasNew: true}
		}
	}
	for k, v := range b {
		if _, ok := a[k]; !ok {
			want[k] = Change[int, int]{Key: k, New: v, HasNew: true}
		}
	}
	got := map[int]Change[int, int]{}
	for c := range Diff(before, after, equal) {
		require.NotContains(t, got, c.Key, "a key comes once")
		got[c.Key] = c
	}
	require.Equal(t, want, got)
}

// TestWritesAloneLeaveTheirBase: without an owner, no write is seen by the Map it began from.
func TestWritesAloneLeaveTheirBase(t *testing.T) {
	w := Writer[string, int]{Hash: Hash[string]}
	first, _, _ := w.Set(Map[string, int]{}, Hash("a"), "a", 1)
	second, _, _ := w.Set(first, Hash("a"), "a", 2)
	second, _, _ = w.Set(second, Hash("b"), "b", 3)
	require.Equal(t, map[string]int{"a": 1}, maps.Collect(first.All()))
	require.Equal(t, map[string]int{"a": 2, "b": 3}, maps.Collect(second.All()))
}

// TestAnOwnerCopiesOnce: what a transaction has made it changes in place.
func TestAnOwnerCopiesOnce(t *testing.T) {
	e := begin[int, int]()
	for i := range 1000 {
		e.set(i, i)
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { e.set(5, 6) }))
	e.w.Owner = 0
	require.NotZero(t, testing.AllocsPerRun(10, func() { e.set(5, 6) }))
}

// TestBuild: a Map made at once has the shape of one made by writes, the last of equal keys
// counting.
func TestBuild(t *testing.T) {
	underEachHash(t, func(t *testing.T, hash func(int) uint64, r *rand.Rand) {
		for _, n := range []int{0, 1, 31, 32, 33, 34, 100, 2000} {
			for _, different := range []int{1, 20, 40, 300, math.MaxInt} {
				var entries []Entry[int, int]
				var hashed []uint64
				want := map[int]int{}
				w := Writer[int, int]{Hash: hash}
				var byWrites Map[int, int]
				for i := range n {
					key := r.IntN(different)
					want[key] = i
					entries, hashed = append(entries, Entry[int, int]{Key: key, Value: i}), append(hashed, hash(key))
					byWrites, _, _ = w.Set(byWrites, hash(key), key, i)
				}
				m := w.Build(entries, hashed)
				require.NoError(t, m.Check(hash))
				require.Equal(t, want, contents(m))
				for c := range Diff(byWrites, m, equal) {
					require.Fail(t, "a difference", "%v", c)
				}
			}
		}
	})
}

// TestReadsAtEverySize asks for present and absent keys. The sizes are on each side of those at
// which a node gets another layout, or is read in another way.
func TestReadsAtEverySize(t *testing.T) {
	underEachHash(t, func(t *testing.T, hash func(int) uint64, r *rand.Rand) {
		e, want := &edit[int, int]{w: Writer[int, int]{Hash: hash, Owner: NewOwner()}}, map[int]int{}
		for _, n := range []int{1, 8, 9, fewMax, fewMax + 1, bucketMax, bucketMax + 1, crowded - 1, crowded, crowded + 1, 1200} {
			for len(want) < n {
				key := 2 * r.IntN(4000)
				want[key] = n
				e.set(key, n)
			}
			require.NoError(t, e.Check(hash))
			for key := range 8000 {
				value, there := want[key]
				got, ok := e.Get(hash(key), key)
				place, held := e.Place(hash(key), key)
				if got != value || ok != there || held != there || held && place.Value != value {
					require.Fail(t, "a wrong answer", "key %d of %d: %d, %t, and place %t; want %d, %t", key, n, got, ok, held, value, there)
				}
			}
		}
	})
}

// TestSwap places pointers by what they point to, as a store's indexes do.
func TestSwap(t *testing.T) {
	w := Writer[*int, struct{}]{Hash: func(p *int) uint64 { return Hash(*p) }}
	var set Map[*int, struct{}]
	held := make([]*int, 200)
	for i := range held {
		held[i] = &[]int{i}[0]
		set = w.Swap(set, Hash(i), nil, held[i])
	}
	before := set
	for i := range held[:100] {
		newer := &[]int{i}[0]
		set = w.Swap(set, Hash(i), held[i], newer)
		held[i] = newer
	}
	require.NoError(t, set.Check(w.Hash))
	require.Equal(t, 200, set.Len())
	require.ElementsMatch(t, held, slices.Collect(set.Keys()))
	differences := 0
	for range Diff(before, set, func(_, _ struct{}) bool { return true }) {
		differences++
	}
	require.Equal(t, 200, differences, "a hundred gone, a hundred added")
}

func TestIterationStopsWhenAsked(t *testing.T) {
	e := begin[int, int]()
	for i := range 100 {
		e.set(i, i)
	}
	m, seen := e.Map, 0
	for range m.All() {
		if seen++; seen == 10 {
			break
		}
	}
	require.Equal(t, 10, seen)
	for _, pair := range [][2]Map[int, int]{{{}, m}, {m, {}}} {
		seen = 0
		for range Diff(pair[0], pair[1], equal) {
			if seen++; seen == 10 {
				break
			}
		}
		require.Equal(t, 10, seen)
	}
}

func TestDiffSkipsWhatIsShared(t *testing.T) {
	e := begin[int, *int]()
	for i := range 100_000 {
		e.set(i, new(int))
	}
	e.w.Owner = 0
	before := e.Map
	e.set(5, new(int))
	after := e.Map
	allocations := testing.AllocsPerRun(10, func() {
		n := 0
		for range Diff(before, after, func(a, b *int) bool { return a == b }) {
			n++
		}
		require.Equal(t, 1, n)
	})
	require.Less(t, allocations, 20.0)
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000, 100_000} {
		keys := make([]string, n)
		e := begin[string, *int]()
		e.w.Hash = HashString
		plain := map[string]*int{}
		for i := range keys {
			keys[i] = fmt.Sprintf("namespace-%d/pod-%d", i%50, i)
			e.set(keys[i], new(int))
			plain[keys[i]] = new(int)
		}
		order := rand.New(rand.NewPCG(1, 1)).Perm(n)
		b.Run(fmt.Sprintf("%d/trie", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				key := keys[order[i%n]]
				e.Get(HashString(key), key)
			}
		})
		b.Run(fmt.Sprintf("%d/map", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				_ = plain[keys[order[i%n]]]
			}
		})
		b.Run(fmt.Sprintf("%d/set", n), func(b *testing.B) {
			b.ReportAllocs()
			e := edit[string, *int]{e.Map, Writer[string, *int]{Hash: HashString}}
			for i := 0; b.Loop(); i++ {
				e.set(keys[order[i%n]], plain[keys[0]])
			}
		})
	}
}

func equal(a, b int) bool { return a == b }
