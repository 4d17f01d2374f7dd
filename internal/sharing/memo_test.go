package sharing

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testMemo(t *testing.T, l limits) *Memo {
	t.Helper()
	m, err := newMemo(l)
	require.NoError(t, err)
	return m
}

func bounded(objects, bytes, most int) limits {
	l := defaultLimits
	l.objects, l.bytes, l.most, l.follow, l.share = objects, bytes, most, 0, 0
	return l
}

func configMap(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("object-", i)}, Data: map[string]string{"set": fmt.Sprint("a text longer than a key, number ", i/10)}}
}

func decode(t *testing.T, m *Memo, in *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	data, err := in.Marshal()
	require.NoError(t, err)
	out := &corev1.ConfigMap{}
	require.NoError(t, m.Unmarshal(data, out))
	require.Equal(t, in, out)
	return out
}

// count recounts what the statistics say.
func (m *Memo) count() (entries, bytes int) {
	for _, s := range m.sites {
		entries += s.young.entries + s.old.entries
		bytes += s.young.bytes + s.old.bytes
	}
	return entries, bytes
}

// share reports whether two objects have one map.
func share(a, b *corev1.ConfigMap) bool {
	return reflect.ValueOf(a.Data).Pointer() == reflect.ValueOf(b.Data).Pointer()
}

func TestWhatIsUsedIsKeptAndTheRestIsForgotten(t *testing.T) {
	m := testMemo(t, bounded(20, 1<<30, 1<<30))
	var all []*corev1.ConfigMap
	for i := range 100 {
		all = append(all, decode(t, m, configMap(i)))
	}
	require.True(t, share(all[98], all[99]), "of the object before")
	require.True(t, share(all[89], decode(t, m, configMap(89))), "used by the last generation")
	require.False(t, share(all[0], decode(t, m, configMap(0))), "used by nothing for two generations")
}

func TestALongListMakesLongGenerations(t *testing.T) {
	m := testMemo(t, bounded(20, 1<<30, 1<<30))
	m.Listed(100, 0)
	var all []*corev1.ConfigMap
	for i := range 100 {
		all = append(all, decode(t, m, configMap(i)))
	}
	require.True(t, share(all[0], decode(t, m, configMap(0))))
}

// TestAFullGenerationWaitsForOtherDecoders: another goroutine may be reading in the space that
// would serve again.
func TestAFullGenerationWaitsForOtherDecoders(t *testing.T) {
	m := testMemo(t, bounded(20, 1<<30, 1<<30))
	other := m.take(1, true)
	first := decode(t, m, configMap(0))
	for i := range maxLate {
		decode(t, m, configMap(i))
	}
	require.True(t, share(first, decode(t, m, configMap(0))), "the generation goes on")
	for i := range 2 * (maxLate + 30) {
		decode(t, m, configMap(10+i))
	}
	require.False(t, share(first, decode(t, m, configMap(0))), "but not for ever")
	m.giveBack(other)
	for i := range 100 {
		decode(t, m, configMap(i))
	}
	require.False(t, share(first, decode(t, m, configMap(0))))
	require.Zero(t, m.decoding.Load())
}

func TestAGenerationIsBoundedByTheCollection(t *testing.T) {
	m := testMemo(t, bounded(20, 1<<10, 1<<24))
	require.EqualValues(t, 1<<10, m.most.Load(), "at least")
	m.take(1<<20, true)
	require.EqualValues(t, 1<<17, m.most.Load(), "an eighth of what has arrived")
	m.take(1<<30, true)
	require.EqualValues(t, maxArrived, m.most.Load())
	m.Listed(1, 1<<15)
	m.take(1<<30, true)
	require.EqualValues(t, 1<<12, m.most.Load(), "an eighth of the collection, however often it changes")
	m.Listed(1, 1<<30)
	require.EqualValues(t, 1<<24, m.most.Load(), "at most")
}

func TestTheStatisticsAreTheSumOfWhatIsHeld(t *testing.T) {
	m := testMemo(t, bounded(50, 4<<10, 1<<20))
	m.Listed(500, 1)
	for i := range 2000 {
		decode(t, m, configMap(i*7%500))
		_, err := m.UnmarshalTree(fmt.Appendf(nil, `{"metadata":{"name":"object-%d"},"spec":{"set":%d,"list":["a","b"]}}`, i, i/10))
		require.NoError(t, err)
		entries, bytes := m.count()
		require.Equal(t, entries, m.Stats().Entries)
		require.Equal(t, bytes, m.Stats().Held)
		require.Less(t, bytes+entries*entryBytes, 2*(4<<10+1<<10), "two generations, each with the parts of one object on top")
	}
}

func TestAPlaceThatFindsNothingRests(t *testing.T) {
	limits := defaultLimits
	limits.share = 0
	m := testMemo(t, limits)
	for i := range 10 * trial {
		decode(t, m, configMap(i))
	}
	p := m.planOf(reflect.TypeFor[corev1.ConfigMap]())
	meta := m.planOf(reflect.TypeFor[metav1.ObjectMeta]())
	for i := range m.idle[1:] {
		require.Nil(t, m.idle[1+i].Load(), "a goroutine that decodes alone has one decoder")
	}
	number := func(of *plan, number int) *field { return &of.fields[of.index[number]-1] }
	root := m.idle[0].Load().roots[p.typ]
	name := number(meta, 1)
	require.Positive(t, root.slots[number(p, 1).slot].below.slots[name.slot].whole.skip)
	require.Equal(t, 1, name.whole.made.Load().young.entries, "what comes once is not kept, but for the first value")
	require.Empty(t, root.slots[number(p, 1).slot].below.slots[name.slot].whole.recent, "given back")
}

// TestALongListIsJudgedOverManyObjects: each Node has 50 of the 400 images of its cluster. The
// first list finds none, and the next ones few.
func TestALongListIsJudgedOverManyObjects(t *testing.T) {
	m := testMemo(t, defaultLimits)
	random := rand.New(rand.NewPCG(1, 2))
	const nodes, images, each = 300, 400, 50
	own := map[*byte]bool{}
	for range nodes {
		node := &corev1.Node{}
		for _, i := range random.Perm(images)[:each] {
			node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
				Names: []string{fmt.Sprintf("registry.example.com/image-%d@sha256:%064x", i, i)}, SizeBytes: int64(i)})
		}
		data, err := node.Marshal()
		require.NoError(t, err)
		got := &corev1.Node{}
		require.NoError(t, m.Unmarshal(data, got))
		require.Equal(t, node, got)
		for _, image := range got.Status.Images {
			own[unsafe.StringData(image.Names[0])] = true
		}
	}
	require.Less(t, len(own), nodes*each/5, "names in memory")
}

func TestOneMemoServesManyGoroutines(t *testing.T) {
	m := testMemo(t, bounded(50, 4<<10, 1<<20))
	var running sync.WaitGroup
	for g := range 4 {
		running.Go(func() {
			for i := range 300 {
				data, _ := configMap(i).Marshal()
				out := &corev1.ConfigMap{}
				if err := m.Unmarshal(data, out); err != nil || out.Data["set"] != configMap(i).Data["set"] {
					t.Errorf("goroutine %d: %v, %v", g, err, out.Data)
				}
				text := fmt.Appendf(nil, `{"metadata":{"name":"n"},"data":{"set":"a text longer than a key, number %d"}}`, i/10)
				typed := &corev1.ConfigMap{}
				if err := m.UnmarshalTyped(text, typed); err != nil || typed.Data["set"] != configMap(i).Data["set"] {
					t.Errorf("goroutine %d: %v, %v", g, err, typed.Data)
				}
				tree, err := m.UnmarshalTree(text)
				if err != nil || tree["data"].(map[string]any)["set"] != configMap(i).Data["set"] {
					t.Errorf("goroutine %d: %v, %v", g, err, tree)
				}
				m.Stats()
			}
		})
	}
	running.Wait()
	entries, bytes := m.count()
	require.Equal(t, entries, m.Stats().Entries)
	require.Equal(t, bytes, m.Stats().Held)
	require.Zero(t, m.decoding.Load())
}
