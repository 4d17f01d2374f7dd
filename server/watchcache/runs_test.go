package watchcache_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// runs lists a page, and makes a text of each run. It returns how many it had to make, of how many.
func runs(t *testing.T, c *podCache, r watchcache.Request) (page watchcache.Page[*corev1.Pod], made, all int) {
	t.Helper()
	page, err := c.Page(t.Context(), r)
	require.NoError(t, err)
	encodings := page.Encode("text", new(counter).encode)
	for i := 0; i < len(page.Objects); {
		end, ok := encodings.Run(i)
		if !ok {
			i++
			continue
		}
		var want strings.Builder
		for _, p := range page.Objects[i:end] {
			fmt.Fprintf(&want, "%s/%s@%s", p.Namespace, p.Name, p.ResourceVersion)
		}
		value, err := encodings.OfRun(i, end, "joined", func() (any, int64, error) {
			made++
			var text strings.Builder
			for ; i < end; i++ {
				p := page.Objects[i]
				fmt.Fprintf(&text, "%s/%s@%s", p.Namespace, p.Name, p.ResourceVersion)
			}
			return text.String(), int64(text.Len()), nil
		})
		require.NoError(t, err)
		require.Equal(t, want.String(), value)
		all++
		i = end
	}
	return page, made, all
}

// TestListsShareRuns of a state, and of the next one but for the runs that have changed, whatever
// is created, updated and deleted. A page makes a part of them, and what finds no room is not kept.
func TestListsShareRuns(t *testing.T) {
	const objects, changes = 2000, 5
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	filled := func(options ...watchcache.Option) *podCache {
		c := newCache(t, options...)
		var pods []*corev1.Pod
		for i := range objects {
			pods = append(pods, stored(fmt.Sprintf("pod-%06d", i*500), i+1))
		}
		require.NoError(t, c.Replace(store.Items(pods...), store.At(fmt.Sprint(objects))))
		return c
	}
	c := filled()
	last, made, all := runs(t, c, watchcache.Request{})
	require.Equal(t, all, made)
	require.Greater(t, all, objects/100)
	version := objects
	for range 50 {
		for range changes {
			version++
			p := stored(fmt.Sprintf("pod-%06d", random.IntN(500*objects)), version)
			if random.IntN(2) == 0 {
				p = stored(last.Objects[random.IntN(len(last.Objects))].Name, version)
			}
			if random.IntN(3) == 0 {
				require.NoError(t, c.Delete(p))
			} else {
				require.NoError(t, c.Update(p))
			}
		}
		next, made, all := runs(t, c, watchcache.Request{})
		require.LessOrEqual(t, made, 2*changes, "of %d", all) // one that comes may be a border
		_, made, _ = runs(t, c, watchcache.Request{})
		require.Zero(t, made)
		some := watchcache.Request{}
		some.Limit = 500
		page, made, ofPage := runs(t, c, some)
		require.Zero(t, made)
		require.Less(t, ofPage, all)
		some.Continue = page.Meta.Continue
		_, made, _ = runs(t, c, some)
		require.Zero(t, made)
		runtime.KeepAlive(last)
		last = next
	}
	runtime.KeepAlive(last)

	c = filled(watchcache.WithListBytes(0))
	last, _, _ = runs(t, c, watchcache.Request{})
	_, made, all = runs(t, c, watchcache.Request{})
	require.Equal(t, all, made)
	runtime.KeepAlive(last)
}
