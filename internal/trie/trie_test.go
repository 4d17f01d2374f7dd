package trie

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// hashes are the real one and three bad ones, so that every depth and the collision lists are exercised.
var hashes = map[string]func(int) uint64{
	"real":        hashOf[int],
	"six bits":    func(k int) uint64 { return hashOf(k) & 0x3f },
	"top bits":    func(k int) uint64 { return hashOf(k) &^ (1<<55 - 1) },
	"all collide": func(int) uint64 { return 7 },
}

func edit(m Map[int, int], hash func(int) uint64) *Edit[int, int] {
	e := m.Edit()
	e.hash = hash
	return e
}

func contents(m Map[int, int]) map[int]int { return maps.Collect(m.All()) }

// TestModel drives a Map and a plain map through the same random edits, keeps every version, and compares
// versions, structure and differences with what the plain maps say.
func TestModel(t *testing.T) {
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 1))
			type version struct {
				m    Map[int, int]
				want map[int]int
			}
			versions := []version{{want: map[int]int{}}}
			for range 150 {
				base := versions[r.IntN(len(versions))]
				e, want := edit(base.m, hash), maps.Clone(base.want)
				for range r.IntN(60) {
					randomEdit(t, r, e, want)
				}
				m := e.Map()
				require.NoError(t, m.check(hash))
				requireDiff(t, base.m, m)
				requireDiff(t, m, versions[r.IntN(len(versions))].m)
				versions = append(versions, version{m, want})
			}
			for _, v := range versions {
				require.NoError(t, v.m.check(hash))
				require.Equal(t, v.want, contents(v.m))
			}
		})
	}
}

func randomEdit(t *testing.T, r *rand.Rand, e *Edit[int, int], want map[int]int) {
	key := r.IntN(200)
	before, was := want[key]
	var old int
	var had bool
	if r.IntN(5) < 3 {
		value := r.IntN(4)
		old, had = e.Set(key, value)
		want[key] = value
	} else {
		old, had = e.Delete(key)
		delete(want, key)
	}
	require.Equal(t, was, had)
	require.Equal(t, before, old)
	require.Equal(t, len(want), e.Len())
	got, ok := e.Get(key)
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
			want[k] = gone(k, v)
		} else if now != v {
			want[k] = changed(k, v, now)
		}
	}
	for k, v := range b {
		if _, ok := a[k]; !ok {
			want[k] = added(k, v)
		}
	}
	got := map[int]Change[int, int]{}
	for c := range Diff(before, after) {
		require.NotContains(t, got, c.Key, "a key comes once")
		got[c.Key] = c
	}
	require.Equal(t, want, got)
}

func TestEditGoesOnAfterMap(t *testing.T) {
	e := Map[string, int]{}.Edit()
	e.Set("a", 1)
	first := e.Map()
	e.Set("a", 2)
	e.Set("b", 3)
	second := e.Map()
	require.Equal(t, map[string]int{"a": 1}, maps.Collect(first.All()))
	require.Equal(t, map[string]int{"a": 2, "b": 3}, maps.Collect(second.All()))
}

func TestEqualContentsHaveEqualOrder(t *testing.T) {
	up, down := Map[int, int]{}.Edit(), Map[int, int]{}.Edit()
	for i := range 1000 {
		up.Set(i, i)
		down.Set(999-i, 999-i)
	}
	for i := 1000; i < 1100; i++ {
		up.Set(i, i)
		up.Delete(i)
	}
	var a, b []int
	for k := range up.Map().All() {
		a = append(a, k)
	}
	for k := range down.Map().All() {
		b = append(b, k)
	}
	require.True(t, slices.Equal(a, b))
}

func TestIterationStopsWhenAsked(t *testing.T) {
	e := Map[int, int]{}.Edit()
	for i := range 100 {
		e.Set(i, i)
	}
	m, seen := e.Map(), 0
	for range m.All() {
		if seen++; seen == 10 {
			break
		}
	}
	require.Equal(t, 10, seen)
	for _, pair := range [][2]Map[int, int]{{{}, m}, {m, {}}} {
		seen = 0
		for range Diff(pair[0], pair[1]) {
			if seen++; seen == 10 {
				break
			}
		}
		require.Equal(t, 10, seen)
	}
}

func TestDiffSkipsWhatIsShared(t *testing.T) {
	e := Map[int, *int]{}.Edit()
	for i := range 100_000 {
		e.Set(i, new(int))
	}
	before := e.Map()
	e.Set(5, new(int))
	after := e.Map()
	allocations := testing.AllocsPerRun(10, func() {
		n := 0
		for range Diff(before, after) {
			n++
		}
		require.Equal(t, 1, n)
	})
	require.Less(t, allocations, 20.0)
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		keys := make([]string, n)
		e := Map[string, *int]{}.Edit()
		plain := map[string]*int{}
		for i := range keys {
			keys[i] = fmt.Sprintf("namespace-%d/pod-%d", i%50, i)
			e.Set(keys[i], new(int))
			plain[keys[i]] = new(int)
		}
		m := e.Map()
		order := rand.New(rand.NewPCG(1, 1)).Perm(n)
		b.Run(fmt.Sprintf("%d/trie", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				m.Get(keys[order[i%n]])
			}
		})
		b.Run(fmt.Sprintf("%d/map", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				_ = plain[keys[order[i%n]]]
			}
		})
		b.Run(fmt.Sprintf("%d/set", n), func(b *testing.B) {
			b.ReportAllocs()
			m := m
			for i := 0; b.Loop(); i++ {
				e := m.Edit()
				e.Set(keys[order[i%n]], new(int))
				m = e.Map()
			}
		})
	}
}
