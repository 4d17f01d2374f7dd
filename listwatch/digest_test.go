package listwatch

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/internal/sharing"
)

func TestAnEntryIsOfOneObjectOnly(t *testing.T) {
	d := newDigests()
	first, second := somePod(1, 10), somePod(1, 10)
	bytesOf, others := d.hash.Sum([]byte("the bytes")), d.hash.Sum([]byte("other bytes"))
	at := d.entry("uid")
	require.Equal(t, at, d.entryOf([]byte("uid")))
	require.False(t, d.is(at, first, bytesOf), "nothing is known yet")
	d.note(at, first, bytesOf, nil)
	require.True(t, d.is(at, first, bytesOf))
	require.False(t, d.is(at, first, others))
	require.False(t, d.is(at, second, bytesOf), "an equal object is not that object")
	require.False(t, d.is(d.entry("another"), first, bytesOf))
	d.became(at, second, second)
	require.True(t, d.is(at, first, bytesOf), "second was never known")
	d.became(at, first, second)
	require.False(t, d.is(at, first, bytesOf))
	require.True(t, d.is(at, second, bytesOf))
	d.distrust("ns/pod")
	require.False(t, d.is(at, second, bytesOf))
	d.note(at, *first, bytesOf, nil)
	require.False(t, d.is(at, *first, bytesOf), "values have no address")
}

// TestNotesAreOfOneStateOnly: notes go with the state that they are of. A list forgets them, too: a
// program may have written into the objects before it.
func TestNotesAreOfOneStateOnly(t *testing.T) {
	d := newDigests()
	pod, next := somePod(1, 10), somePod(1, 10)
	at, sum := d.entry("uid"), d.hash.Sum([]byte("the bytes"))
	for _, forget := range []func(){
		func() { d.note(at, next, sum, nil) },
		func() { d.became(at, pod, next) },
		func() { d.forget([]byte("uid")) },
		func() { d.distrust("ns/pod") },
		func() { d.begin() },
	} {
		d.note(at, pod, sum, make(sharing.Notes, 1))
		_, notes := d.last(at)
		require.Len(t, notes, 1)
		forget()
		_, notes = d.last(at)
		require.Empty(t, notes)
	}
}

// TestEntriesOfGoneObjectsAreSwept: entries of dead objects go even without a list or a DELETED
// event.
func TestEntriesOfGoneObjectsAreSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDigests()
		var kept []*corev1.Pod
		for i := range 20 * minSweep {
			p := &corev1.Pod{}
			if i%100 == 0 {
				kept = append(kept, p)
			}
			d.note(d.entry(types.UID(fmt.Sprint(i))), p, d.hash.Sum([]byte{byte(i)}), make(sharing.Notes, 1))
			if i%minSweep == 0 {
				runtime.GC()
			}
			synctest.Wait() // a sweep is a goroutine
			require.LessOrEqual(t, len(d.entries), 3*minSweep)
			require.LessOrEqual(t, len(d.notes), 3*minSweep)
		}
		for i, p := range kept {
			require.True(t, d.is(d.entry(types.UID(fmt.Sprint(100*i))), p, d.hash.Sum([]byte{byte(100 * i)})))
		}
	})
}

func TestADeletedObjectHasNoEntry(t *testing.T) {
	d := podDecoder(maxObject)
	d.held = &heldCopy[*corev1.Pod]{digests: newDigests(), get: func(string) (*corev1.Pod, any, bool) { return nil, nil, false }}
	read := func(events ...[]byte) {
		require.NoError(t, d.watch(bytes.NewReader(bytes.Join(events, nil)), false, func(_ Event[*corev1.Pod], err error) bool {
			require.NoError(t, err)
			return true
		}))
	}
	read(podFrame(t, watch.Added, somePod(1, 10)), podFrame(t, watch.Added, somePod(2, 10)))
	require.Len(t, d.held.digests.entries, 2)
	read(podFrame(t, watch.Deleted, somePod(1, 10)))
	require.Len(t, d.held.digests.entries, 1)
}

// BenchmarkDigest is what a first sync pays per object: the digest of 8.4 KB, and its entry.
func BenchmarkDigest(b *testing.B) {
	b.ReportAllocs()
	const objects = 8000
	data := make([]byte, 8400)
	var uids []types.UID
	for i := range objects {
		uids = append(uids, types.UID(fmt.Sprintf("%08d-0000-4000-8000-000000000000", i)))
	}
	kept := make([]*corev1.Pod, objects)
	d := newDigests()
	for i := 0; b.Loop(); i++ {
		if i%objects == 0 {
			b.StopTimer()
			d = newDigests()
			for j := range kept {
				kept[j] = &corev1.Pod{}
			}
			b.StartTimer()
		}
		p := kept[i%objects]
		d.note(d.entry(uids[i%objects]), p, d.hash.Sum(data), nil)
	}
}
