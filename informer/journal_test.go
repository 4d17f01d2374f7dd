package informer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/storetest"
)

// podJournal is a journal of pods, as a reflector writes into it.
type podJournal struct {
	intake[*corev1.Pod]
	*journal
}

func newPods(capacity int) podJournal {
	objects := store.NewIndexer[*corev1.Pod]()
	j := newJournal(capacity, objects.Entries())
	return podJournal{intake[*corev1.Pod]{objects, j}, j}
}

// pods are the pods of a state, by key.
func pods(state snapshot) map[string]*corev1.Pod {
	held := map[string]*corev1.Pod{}
	for key, entry := range state.All() {
		held[key] = entry.(*corev1.Pod)
	}
	return held
}

// TestJournalConforms also applies the ring's events to a map, and compares the map with the store.
func TestJournalConforms(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Rig {
		j := newPods(64)
		require.NoError(t, j.Replace(store.Items[*corev1.Pod](), store.At("")))
		f := follow(t, j)
		return storetest.Rig{
			Store: j,
			Objects: func() []*corev1.Pod {
				f.catchUp(t, false)
				require.Equal(t, maps.Collect(j.Snapshot().All()), f.held)
				return slices.Collect(maps.Values(f.held))
			},
			ResourceVersion: j.entries.ResourceVersion,
		}
	})
}

// follower applies its readings to a map.
type follower struct {
	journal podJournal
	reader  *reader
	held    map[string]*corev1.Pod
	next    uint64

	lives map[string]string // by key: the UIDs that were told as added and deleted, in order
	short int               // the objects of which nothing but their death was in the ring
}

// live notes the beginning or the end of a life.
func live(lives map[string]string, e event) {
	switch e.Type {
	case Added:
		lives[e.Key] += " +" + string(e.New.GetUID())
	case Deleted:
		lives[e.Key] += " -" + string(e.Old.GetUID())
	}
}

func follow(t *testing.T, j podJournal) *follower {
	rd := j.ring.enter()
	first, ok := j.ring.begin(rd)
	require.True(t, ok)
	return &follower{journal: j, reader: rd, held: pods(first.state), next: first.next, lives: map[string]string{}}
}

// catchUp reads, and reports whether some changes were evicted. An event begins with what was told
// last; only a deletion that was seen may bring a newer state of the same object. It is complete if
// every life was told.
func (f *follower) catchUp(t *testing.T, whole bool) (evicted, complete bool) {
	got := f.journal.ring.read(f.reader, nil, whole)
	apply := func(told event) {
		e := opened(told, func(entry store.Entry) *corev1.Pod { return entry.(*corev1.Pod) })
		last := f.held[e.Key]
		live(f.lives, told)
		if e.Type == Deleted && e.Final {
			require.Equal(t, last.UID, e.Old.UID)
		} else {
			require.Same(t, last, e.Old)
		}
		f.held[e.Key] = e.New
		if e.Type == Deleted {
			delete(f.held, e.Key)
		}
	}
	for _, n := range got.events {
		apply(n.event)
	}
	if got.gap != nil {
		require.Empty(t, got.events)
		now := maps.Collect(got.state.All())
		for e := range got.gap.until(got.state) {
			require.True(t, e.Missed)
			if e.Type == Added && len(got.gap.deaths) > 0 && e.New != now[e.Key] {
				f.short++
			}
			apply(e)
		}
	} else {
		require.Len(t, got.events, int(got.next-f.next), "every change")
	}
	if whole {
		require.Equal(t, pods(got.state), f.held)
	}
	f.next = got.next
	return got.gap != nil, got.gap == nil || got.gap.complete
}

// TestReadersAtAnyDistance: readers begin, read, lag and leave at random. Each knows the store's
// content after each reading, and is told every change if it lags less than a ring. Beyond that, it
// is told of every object that was added and deleted, unless it lags more than the deaths reach.
func TestReadersAtAnyDistance(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 6))
	for _, capacity := range []int{1, 2, 3, 16} {
		j := newPods(capacity)
		require.NoError(t, j.Replace(store.Items(storetest.Pod("p0", 1)), store.At("1")))
		var followers []*follower
		evictions, readings, short, incomplete := 0, 0, 0, 0
		truth := map[string]string{} // as follower.lives
		for version := 2; version < 4000; version++ {
			pod := storetest.Pod(fmt.Sprintf("p%d", random.IntN(12)), version)
			if held, there := j.Get("ns/" + pod.Name); there && random.IntN(4) > 0 {
				pod.UID = held.UID
			} else {
				pod.UID = types.UID(fmt.Sprint("uid", version))
			}
			before := j.entries.Snapshot()
			switch random.IntN(60) {
			case 0:
				items := []*corev1.Pod{pod}
				for _, held := range j.Snapshot().All() {
					if random.IntN(8) > 0 && held.Name != pod.Name {
						items = append(items, held)
					}
				}
				require.NoError(t, j.Replace(store.Items(items...), store.At(pod.ResourceVersion)))
			case 1:
				require.NoError(t, j.Bookmark(pod.ResourceVersion))
			default:
				held, there := j.Get("ns/" + pod.Name)
				switch choice := random.IntN(6); {
				case choice > 1 || !there:
					require.NoError(t, j.Update(pod))
				case choice == 0:
					final := held.DeepCopy()
					final.ResourceVersion = pod.ResourceVersion
					require.NoError(t, j.Delete(final))
				default:
					require.NoError(t, j.drop(held, true))
				}
			}
			for e := range difference(before, j.entries.Snapshot()) {
				live(truth, e)
			}
			for i, f := range followers {
				if random.IntN(1+i*capacity) > 0 {
					continue // the later ones lag more
				}
				behind := j.ring.timeline.next - f.next
				evicted, complete := f.catchUp(t, random.IntN(4) == 0)
				readings++
				if complete {
					require.Equal(t, truth, f.lives)
				} else {
					incomplete++
					f.lives = maps.Clone(truth)
				}
				if evicted {
					evictions++
				}
				require.Equal(t, behind > uint64(capacity), evicted)
				require.Equal(t, maps.Collect(j.Snapshot().All()), f.held)
			}
			if random.IntN(40) == 0 {
				f := follow(t, j)
				f.lives = maps.Clone(truth)
				followers = append(followers, f)
			}
			if len(followers) > 6 {
				i := random.IntN(len(followers))
				j.ring.leave(followers[i].reader)
				short += followers[i].short
				followers = slices.Delete(followers, i, i+1)
			}
		}
		require.Greater(t, evictions, 50)
		require.Greater(t, readings-evictions, 50)
		require.Greater(t, short, 50, "objects that lived while a reader lagged")
		require.Greater(t, evictions-incomplete, 50)
		for _, f := range followers {
			j.ring.leave(f.reader)
		}
		require.Zero(t, j.ring.timeline.behind)
		require.Empty(t, j.ring.timeline.deaths.list)
	}
}

// TestAnEventTakesNoSnapshot: while a reader keeps up, a second update of an object copies nothing
// of the store or the ring. Look-ups by a source do not change that.
func TestAnEventTakesNoSnapshot(t *testing.T) {
	j := newPods(1024)
	var pods []*corev1.Pod
	for i := range 1000 {
		pods = append(pods, storetest.Pod(fmt.Sprint("p", i), 1))
	}
	require.NoError(t, j.Replace(store.Items(pods...), store.At("1")))
	rd := j.ring.enter()
	_, ok := j.ring.begin(rd)
	require.True(t, ok)
	version := 1
	newer := func() []*corev1.Pod {
		version++
		next := make([]*corev1.Pod, len(pods))
		for i := range next {
			next[i] = storetest.Pod(fmt.Sprint("p", i), version)
		}
		return next
	}
	for _, pod := range newer() { // the first write after the reader's snapshot copies
		require.NoError(t, j.Update(pod))
	}
	var buffer []told
	buffer = j.ring.read(rd, buffer, false).events[:0]
	next := newer()
	require.Zero(t, testing.AllocsPerRun(500, func() {
		pod := next[0]
		next = next[1:]
		if _, ok := j.Get("ns/p7"); !ok {
			t.Error("not there")
		}
		if err := j.Update(pod); err != nil {
			t.Error(err)
		}
		if got := j.ring.read(rd, buffer, false); len(got.events) != 1 || got.events[0].New != pod {
			t.Error("another event")
		}
	}))
}

// TestAnotherUIDIsAnotherObject: another UID under a held key means that a deletion was missed. The
// final state of another object is not that of the held one.
func TestAnotherUIDIsAnotherObject(t *testing.T) {
	j := newPods(8)
	j.ring.fill()
	rd := j.ring.enter() // without a reader, changes release their objects
	first, second, third := storetest.Pod("a", 1), storetest.Pod("a", 5), storetest.Pod("a", 9)
	second.UID, third.UID = "second", "third"
	require.NoError(t, j.Add(first))
	require.NoError(t, j.Update(second))
	require.NoError(t, j.Delete(third))
	told := j.ring.read(rd, nil, false).events
	var events []event
	for _, n := range told {
		events = append(events, n.event)
	}
	require.Equal(t, []event{
		{Key: "ns/a", New: first, Type: Added},
		{Key: "ns/a", Old: first, Type: Deleted, Missed: true},
		{Key: "ns/a", New: second, Type: Added},
		{Key: "ns/a", Old: second, Type: Deleted, Missed: true},
	}, events)
}

// TestTheRingHasRoomForWhatIsUnread: an informer whose handlers keep up has a few slots, whatever
// came before.
func TestTheRingHasRoomForWhatIsUnread(t *testing.T) {
	j := newPods(1024)
	j.ring.fill()
	rd := j.ring.enter()
	at := &j.ring.timeline
	require.Empty(t, at.slots, "nothing has come")
	version := 0
	burst := func(changes int) {
		for range changes {
			version++
			require.NoError(t, j.Update(storetest.Pod("a", version)))
		}
		require.LessOrEqual(t, len(at.slots), 1024)
		require.Len(t, j.ring.read(rd, nil, false).events, changes, "each one")
		require.Equal(t, at.next, at.first, "all have read them")
	}
	burst(1)
	require.Len(t, at.slots, fewSlots)
	for range 3 * oftenWide { // small bursts between large ones
		burst(900)
		burst(1)
	}
	require.Len(t, at.slots, 1024)
	for range 7 * oftenWide {
		burst(1)
	}
	require.Len(t, at.slots, fewSlots)
}

// TestVersionsWithoutAnOrderStayInTheRing: WaitFor looks for them there.
func TestVersionsWithoutAnOrderStayInTheRing(t *testing.T) {
	j := newPods(16)
	j.ring.fill()
	for i := range 40 {
		pod := storetest.Pod("a", 1)
		pod.ResourceVersion = fmt.Sprint("v", i)
		require.NoError(t, j.Update(pod))
	}
	found := func(version string) bool {
		return j.ring.holds("ns/a", func(_ EventType, _ types.UID, at store.Version) bool { return string(at) == version })
	}
	require.True(t, found("v24"))
	require.False(t, found("v23"), "the ring has 16")
	require.Len(t, j.ring.timeline.slots, 16)
}

// TestAWideBufferIsGivenBackLate: bursts and single events take turns, and no burst makes a buffer
// anew.
func TestAWideBufferIsGivenBackLate(t *testing.T) {
	var w wide
	for range 10 * oftenWide {
		require.False(t, w.now(1, 64), "a single event")
		require.False(t, w.now(64, 64), "a burst")
	}
	for range oftenWide - 1 {
		require.False(t, w.now(1, 64))
	}
	require.True(t, w.now(1, 64), "no burst for long")
	for range 10 * oftenWide {
		require.False(t, w.now(1, fewSlots), "as small as it gets")
	}
}

// TestAReaderBeginsWithTheFirstWholeState, however late it reads. A reader that leaves is
// forgotten.
func TestAReaderBeginsWithTheFirstWholeState(t *testing.T) {
	j := newPods(8)
	rd, gone := j.ring.enter(), j.ring.enter()
	_, ok := j.ring.begin(rd)
	require.False(t, ok)
	j.ring.leave(gone)
	require.NoError(t, j.Replace(store.Items(storetest.Pod("a", 1)), store.At("1")))
	require.Len(t, j.ring.timeline.readers, 1)
	require.NoError(t, j.Add(storetest.Pod("b", 2)))
	first, ok := j.ring.begin(rd)
	require.True(t, ok)
	require.Equal(t, 1, first.state.Len())
	require.Len(t, j.ring.read(rd, nil, false).events, 1)
	j.ring.leave(rd)
	require.Empty(t, j.ring.timeline.readers)

	i := NewUnion[*corev1.Pod]()
	h, err := i.AddHandler(func(Event[*corev1.Pod]) {})
	require.NoError(t, err)
	require.Len(t, i.ring.waiting, 1)
	h.Remove()
	require.Empty(t, i.ring.waiting)
}
