package watchcache_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// counter encodes pods, and counts how often.
type counter struct{ made int }

func (c *counter) encode(p *corev1.Pod) ([]byte, error) {
	c.made++
	return []byte(p.Namespace + "/" + p.Name + "@" + p.ResourceVersion), nil
}

// encodedPage is a list in the bytes of one format, which must be those of its objects.
func (c *counter) encodedPage(t *testing.T, cache *podCache, r watchcache.Request) watchcache.Page[*corev1.Pod] {
	t.Helper()
	page, err := cache.Page(t.Context(), r)
	require.NoError(t, err)
	encodings := page.Encode("text", c.encode)
	for i, p := range page.Objects {
		bytes, err := encodings.Bytes(i)
		require.NoError(t, err)
		require.Equal(t, p.Namespace+"/"+p.Name+"@"+p.ResourceVersion, string(bytes))
	}
	return page
}

// TestListsShareEncodings: of each object one encoding is made, for all lists and pages of a state
// and of the next one. Beyond the bound each list makes its own. Nothing is kept for nobody.
func TestListsShareEncodings(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 10 {
		pods = append(pods, stored(fmt.Sprint("pod-", i), i+1))
	}
	filled := func(options ...watchcache.Option) *podCache {
		c := newCache(t, options...)
		require.NoError(t, c.Replace(store.Items(pods...), store.At("10")))
		return c
	}
	c, all := filled(), &counter{}
	all.encodedPage(t, c, watchcache.Request{})
	all.encodedPage(t, c, watchcache.Request{})
	r := watchcache.Request{}
	r.Limit = 3
	r.Continue = all.encodedPage(t, c, r).Meta.Continue
	require.Equal(t, "pod-3", all.encodedPage(t, c, r).Objects[0].Name)
	require.Equal(t, 10, all.made)
	require.NoError(t, c.Update(stored("pod-4", 11)))
	all.encodedPage(t, c, watchcache.Request{})
	require.Equal(t, 11, all.made, "pod-4 alone")

	few, size := &counter{}, len("ns/pod-0@1")
	c = filled(watchcache.WithListBytes(int64(3 * 16)))
	require.LessOrEqual(t, size, 16)
	few.encodedPage(t, c, watchcache.Request{})
	few.encodedPage(t, c, watchcache.Request{})
	require.Equal(t, 10+7, few.made)

	synctest.Test(t, func(t *testing.T) {
		gone := &counter{}
		c := filled()
		gone.encodedPage(t, c, watchcache.Request{})
		time.Sleep(time.Second)
		gone.encodedPage(t, c, watchcache.Request{})
		require.Equal(t, 10, gone.made)
		time.Sleep(3 * time.Second)
		gone.encodedPage(t, c, watchcache.Request{})
		require.Equal(t, 20, gone.made, "no reader has come for a while")
	})
}

// TestSharedEncodingsEnd at the bound: beyond it, to ask for one makes none.
func TestSharedEncodingsEnd(t *testing.T) {
	const objects, room = 10, 3
	var pods []*corev1.Pod
	for i := range objects {
		pods = append(pods, stored(fmt.Sprint("pod-", i), i+1))
	}
	c := newCache(t, watchcache.WithListBytes(room*16+8)) // 10 bytes are allocated as 16
	require.NoError(t, c.Replace(store.Items(pods...), store.At("10")))
	page, err := c.Page(t.Context(), watchcache.Request{})
	require.NoError(t, err)
	all := &counter{}
	encodings := page.Encode("text", all.encode)
	for i := range objects {
		bytes, err := encodings.Shared(i)
		require.NoError(t, err)
		if i < room {
			require.Len(t, bytes, len("ns/pod-0@1"))
		} else {
			require.Nil(t, bytes)
		}
	}
	require.Equal(t, room+1, all.made, "what finds no room, once")
	for i := range room {
		_, err := encodings.Bytes(i)
		require.NoError(t, err)
	}
	require.Equal(t, room+1, all.made)
}

// TestInitialEventsShareEncodings: watchers that begin with the same state share its encodings.
func TestInitialEventsShareEncodings(t *testing.T) {
	const objects = 300 // more than a batch
	var pods []*corev1.Pod
	for i := range objects {
		pods = append(pods, stored(fmt.Sprint("pod-", i), i+1))
	}
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(pods...), store.At(fmt.Sprint(objects))))
	made := 0
	encode := func(e listwatch.Event[*corev1.Pod]) ([]byte, error) {
		made++
		return []byte(e.Object.Name), nil
	}
	var watchers []*watchcache.Watcher[*corev1.Pod]
	for range 3 {
		w, err := c.Watcher(watchcache.Request{})
		require.NoError(t, err)
		defer w.Close()
		watchers = append(watchers, w)
	}
	for _, w := range watchers {
		for seen := 0; seen < objects; {
			events, err := w.Next(t.Context())
			require.NoError(t, err)
			for _, e := range events {
				bytes, err := e.Encoded("text", encode)
				require.NoError(t, err)
				require.Equal(t, e.Object.Name, string(bytes))
				seen++
			}
		}
	}
	require.Equal(t, objects, made)
}

// TestListingsFollowTheState: after each of many random writes, the list and its encodings are
// those of the content, in order.
func TestListingsFollowTheState(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c, encoder := newCache(t), &counter{}
	require.NoError(t, c.Replace(store.Items[*corev1.Pod](), store.At("1")))
	content, version := map[string]*corev1.Pod{}, 1
	for range 300 {
		for range random.IntN(12) {
			version++
			p := stored(fmt.Sprint("pod-", random.IntN(60)), version)
			p.Namespace = fmt.Sprint("ns-", random.IntN(3))
			p.UID = "one"
			if random.IntN(4) == 0 {
				p.UID = "another"
			}
			key := store.KeyOf(p)
			if random.IntN(3) == 0 {
				delete(content, key)
				require.NoError(t, c.Delete(p))
				continue
			}
			content[key] = p
			require.NoError(t, c.Add(p))
		}
		page := encoder.encodedPage(t, c, watchcache.Request{})
		want := []*corev1.Pod{}
		for _, p := range content {
			want = append(want, p)
		}
		slices.SortFunc(want, func(a, b *corev1.Pod) int {
			return strings.Compare(a.Namespace+"\x00"+a.Name, b.Namespace+"\x00"+b.Name)
		})
		require.Equal(t, len(want), len(page.Objects))
		for i := range want {
			require.Same(t, want[i], page.Objects[i])
		}
	}
	require.Less(t, encoder.made, 3*version, "encodings are taken over")
}

// TestAListReadsWhatItSelectsAlone: a list of one namespace, or of one value of an indexed field,
// looks at no other object; of both it takes the fewer.
func TestAListReadsWhatItSelectsAlone(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 1000 {
		p := stored(fmt.Sprint("pod-", i), i+1)
		p.Namespace = fmt.Sprint("ns-", i%10)
		onNode(fmt.Sprint("node-", i%50))(p)
		pods = append(pods, p)
	}
	c := newCache(t)
	require.NoError(t, c.Replace(store.Items(pods...), store.At("1000")))
	read := float64(0)
	for _, row := range []struct {
		namespace, node string
		read, found     int
	}{{"ns-3", "", 100, 100}, {"", "node-7", 20, 20}, {"ns-7", "node-7", 20, 20}, {"ns-6", "node-7", 20, 0}, {"none", "", 0, 0}} {
		r := watchcache.Request{Namespace: row.namespace}
		if row.node != "" {
			r = withFields(r, "spec.nodeName="+row.node)
		}
		page, err := c.Page(t.Context(), r)
		require.NoError(t, err)
		require.Len(t, page.Objects, row.found)
		now := numbers(c)["apiserver_cache_list_fetched_objects_total"]
		require.EqualValues(t, row.read, now-read, "%v", row)
		read = now
	}
	list := c.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.namespace=ns-3"})
	found := 0
	for range list.Items {
		found++
	}
	require.Equal(t, 100, found)
	require.EqualValues(t, 100, numbers(c)["apiserver_cache_list_fetched_objects_total"]-read)
}

func withFields(r watchcache.Request, selector string) watchcache.Request {
	r.FieldSelector = fields.ParseSelectorOrDie(selector)
	return r
}
