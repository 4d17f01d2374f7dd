package sharing_test

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/internal/sharing"
)

// changing is a pod of its own that no other pod resembles, in one of its states.
func changing(i, state int) *corev1.Pod {
	own := func(what string) string { return fmt.Sprintf("%s-of-pod-%d-and-of-no-other", what, i) }
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: own("name"), UID: types.UID(own("uid")), ResourceVersion: fmt.Sprint(state), Annotations: map[string]string{own("key"): own("value")}},
		Spec:       corev1.PodSpec{NodeName: own("node"), Containers: []corev1.Container{{Name: "c", Image: own("image"), Args: []string{own("argument")}}}},
	}
	for _, c := range []string{"a", "b"} {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c, ContainerID: own("container " + c), RestartCount: int32(state),
			VolumeMounts: []corev1.VolumeMountStatus{{Name: own("mount"), MountPath: own("path")}}})
	}
	return pod
}

// follower decodes changes and keeps the last state of each object, with its notes.
type follower struct {
	memo  *sharing.Memo
	mu    sync.Mutex
	last  map[types.UID]*corev1.Pod
	notes map[types.UID]sharing.Notes
}

func follow(memo *sharing.Memo) *follower {
	return &follower{memo: memo, last: map[types.UID]*corev1.Pod{}, notes: map[types.UID]sharing.Notes{}}
}

func (f *follower) decode(t *testing.T, want *corev1.Pod) *corev1.Pod {
	data, err := want.Marshal()
	require.NoError(t, err)
	got := &corev1.Pod{}
	f.mu.Lock()
	last, notes := f.last[want.UID], f.notes[want.UID]
	f.mu.Unlock()
	notes, err = f.memo.UnmarshalAfter(sharing.Last{Changes: true, Object: last, Notes: notes}, data, got)
	require.NoError(t, err)
	clear(data)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last[want.UID], f.notes[want.UID] = got, notes
	return got
}

func sameMap(a, b map[string]string) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

func TestAChangeTakesOverWhatIsTheObjectsOwn(t *testing.T) {
	f := follow(newMemo(t))
	const pods, states = 50, 20
	// The memo learns that no part of one pod is found in another, and looks no more.
	for i := range 10_000 {
		data, err := changing(i, 0).Marshal()
		require.NoError(t, err)
		require.NoError(t, f.memo.Unmarshal(data, &corev1.Pod{}))
	}
	taken := 0
	before := map[int]*corev1.Pod{}
	for state := range states {
		for i := range pods {
			want := changing(i, state)
			got := f.decode(t, want)
			require.Equal(t, want, got)
			if was := before[i]; was != nil && sameMap(was.Annotations, got.Annotations) && &was.Spec.Containers[0] == &got.Spec.Containers[0] &&
				&was.Status.ContainerStatuses[1].VolumeMounts[0] == &got.Status.ContainerStatuses[1].VolumeMounts[0] {
				taken++
			}
			before[i] = got
		}
	}
	require.Greater(t, taken, pods*states*3/4, "of all changes, one in 32 is decoded in full")
	for i, got := range before {
		require.Equal(t, changing(i, states-1), got, "a state was changed after it had been decoded")
	}
}

// TestNotesAreBounded: an object of very many parts is not noted whole.
func TestNotesAreBounded(t *testing.T) {
	f := follow(newMemo(t))
	large := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "large"}}
	for i := range 3000 {
		large.Spec.Volumes = append(large.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("a volume of its own, number %d of very many", i)})
		large.Spec.Tolerations = append(large.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprintf("a toleration of its own, number %d of very many", i)})
	}
	for i := range 16 { // lists with a note for each element
		large.Spec.Containers = append(large.Spec.Containers, corev1.Container{Name: fmt.Sprintf("a container of its own, number %d of very many", i)})
		large.Spec.InitContainers = append(large.Spec.InitContainers, corev1.Container{Name: fmt.Sprintf("a container of its own, number %d of very many", i)})
		large.Spec.EphemeralContainers = append(large.Spec.EphemeralContainers, corev1.EphemeralContainer{TargetContainerName: fmt.Sprintf("a container of its own, number %d of very many", i)})
		large.Spec.HostAliases = append(large.Spec.HostAliases, corev1.HostAlias{IP: fmt.Sprintf("an address of its own, number %d of very many", i)})
	}
	for state := range 5 {
		large.ResourceVersion, large.Spec.NodeName = fmt.Sprint(state), fmt.Sprint(state)
		for i := range large.Spec.Containers { // every other one differs: no run is noted whole
			if i%2 == 0 {
				large.Spec.Containers[i].Image, large.Spec.InitContainers[i].Image = fmt.Sprint(state), fmt.Sprint(state)
				large.Spec.EphemeralContainers[i].Image, large.Spec.HostAliases[i].Hostnames = fmt.Sprint(state), []string{fmt.Sprint(state)}
			}
		}
		require.Equal(t, large, f.decode(t, large))
		require.LessOrEqual(t, len(f.notes["large"]), 48)
	}
	require.NotEmpty(t, f.notes["large"])
}

// TestTheFirstChangeTakesOverWhatTheListDecoded: the caller has the state, of which the memo notes
// nothing.
func TestTheFirstChangeTakesOverWhatTheListDecoded(t *testing.T) {
	memo := newMemo(t)
	taken := 0
	for i := range 100 {
		data, err := changing(i, 0).Marshal()
		require.NoError(t, err)
		listed, changed := &corev1.Pod{}, &corev1.Pod{}
		require.NoError(t, memo.Unmarshal(data, listed))
		want := changing(i, 1)
		if i%2 == 1 { // elements before the changed one stay the same
			want.Status.ContainerStatuses[0].RestartCount = 0
		}
		data, err = want.Marshal()
		require.NoError(t, err)
		_, err = memo.UnmarshalAfter(sharing.Last{Changes: true, Object: listed}, data, changed)
		require.NoError(t, err)
		require.Equal(t, want, changed)
		require.Equal(t, changing(i, 0), listed)
		if &listed.Spec.Containers[0] == &changed.Spec.Containers[0] && sameMap(listed.Annotations, changed.Annotations) {
			taken++
		}
	}
	require.Greater(t, taken, 80, "of all changes, one in 32 is decoded in full")
}

// TestAStateThatWasWrittenIntoIsNotTakenOver: its parts are compared with the bytes.
func TestAStateThatWasWrittenIntoIsNotTakenOver(t *testing.T) {
	memo := newMemo(t)
	for i := range 20 {
		data, err := changing(i, 0).Marshal()
		require.NoError(t, err)
		listed, changed := &corev1.Pod{}, &corev1.Pod{}
		require.NoError(t, listed.Unmarshal(data))
		listed.Spec.Containers[0].Args[0] = "written"
		listed.Annotations["written"] = "too"
		listed.Spec.Priority = new(int32)
		_, err = memo.UnmarshalAfter(sharing.Last{Changes: true, Object: listed}, data, changed)
		require.NoError(t, err)
		require.Equal(t, changing(i, 0), changed)
	}
}

// TestPartsOfAnotherFormAreForgotten: where a message turns out to be decoded as a whole, what
// was noted of it before that means nothing.
func TestPartsOfAnotherFormAreForgotten(t *testing.T) {
	field := func(number byte, of interface{ Marshal() ([]byte, error) }) []byte {
		data, err := of.Marshal()
		require.NoError(t, err)
		return slices.Concat(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(data))), data)
	}
	spec := func(node string) []byte { return field(2, &corev1.PodSpec{NodeName: node}) }
	head := field(1, &metav1.ObjectMeta{Name: "a"})
	usual := slices.Concat(head, spec("a node with a name that is worth a key"))
	memo := newMemo(t)
	var last *corev1.Pod
	var notes sharing.Notes
	for i := range 4 {
		for _, data := range [][]byte{usual, slices.Concat(spec("a node with a name that is worth a key"), head, spec("another one"))} {
			plain, ours := &corev1.Pod{}, &corev1.Pod{}
			require.NoError(t, plain.Unmarshal(data))
			var err error
			notes, err = memo.UnmarshalAfter(sharing.Last{Changes: true, Object: last, Notes: notes}, data, ours)
			require.NoError(t, err)
			require.Equal(t, plain, ours, i)
			last = ours
		}
	}
}

// TestATextOfAnotherWireTypeIsRefused as generated code does, also where its last bytes look like
// the text of the last state.
func TestATextOfAnotherWireTypeIsRefused(t *testing.T) {
	memo := newMemo(t)
	var last *metav1.ListMeta
	var notes sharing.Notes
	for _, row := range []struct {
		data []byte
		ok   bool
	}{{[]byte{0x1a, 0}, true}, {[]byte{0x1a, 0}, true}, {[]byte{0x18, 0}, false}, {[]byte{0x1a, 0}, true}} {
		plain, ours := &metav1.ListMeta{}, &metav1.ListMeta{}
		require.Equal(t, row.ok, plain.Unmarshal(row.data) == nil)
		now, err := memo.UnmarshalAfter(sharing.Last{Changes: true, Object: last, Notes: notes}, row.data, ours)
		require.Equal(t, row.ok, err == nil)
		if err == nil {
			last, notes = ours, now
		}
	}
}

// TestStatesOfOneObjectAtOnce: a round of a watch may have several states of one object, which
// end in any order.
func TestStatesOfOneObjectAtOnce(t *testing.T) {
	f := follow(newMemo(t))
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			random := rand.New(rand.NewSource(int64(worker)))
			for range 300 {
				want := changing(random.Intn(3), random.Intn(5))
				require.Equal(t, want, f.decode(t, want))
			}
		})
	}
	all.Wait()
}

// TestChangesAgreeWhateverTheirForm: states follow each other whose bytes are in another form, or
// damaged, from one to the next.
func TestChangesAgreeWhateverTheirForm(t *testing.T) {
	random := source(t)
	memo := newMemo(t)
	var all []made
	var last *corev1.Pod
	var notes sharing.Notes
	pods := neighbours()
	for range 2000 {
		data, err := pods[random.Intn(len(pods))].Marshal()
		require.NoError(t, err)
		switch random.Intn(3) {
		case 0:
			data = rewritten(random, data, 0)
		case 1:
			data = damaged(random, data)
		}
		plain, ours := &corev1.Pod{}, &corev1.Pod{}
		plainErr := plain.Unmarshal(slices.Clone(data))
		now, err := memo.UnmarshalAfter(sharing.Last{Changes: true, Object: last, Notes: notes}, data, ours)
		require.Equal(t, plainErr == nil, err == nil)
		if err != nil {
			continue
		}
		requireSame(t, podKind, plain, ours)
		last, notes = ours, now
		all = append(all, made{ours, plain})
	}
	for _, m := range all {
		require.True(t, reflect.DeepEqual(m.plain, m.ours), "an object changed after it was decoded")
	}
	require.Greater(t, len(all), 1000)
}

// TestAListThatMoves: after the first container is gone, the parts of others are noted where they
// stand now.
func TestAListThatMoves(t *testing.T) {
	f := follow(newMemo(t))
	for _, containers := range [][]string{
		{"a one 0", "b two 0", "c three 0", "d four 0"},
		{"b two 0", "c three 1", "d four 1"},
		{"b two 0", "c three 2", "d three 2"},
	} {
		want := changing(1, 0)
		want.Status.ContainerStatuses = nil
		for _, c := range containers {
			name, mount, restarts := "", "", int32(0)
			_, err := fmt.Sscan(c, &name, &mount, &restarts)
			require.NoError(t, err)
			want.Status.ContainerStatuses = append(want.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, RestartCount: restarts,
				VolumeMounts: []corev1.VolumeMountStatus{{Name: mount, MountPath: "/a/path/that/is/long/enough/for/a/key/of/its/own"}}})
		}
		require.Equal(t, want, f.decode(t, want))
	}
}

// TestAListThatGrows: its old elements are the bytes that were noted, which have more behind them
// now. The parts around it are taken over.
func TestAListThatGrows(t *testing.T) {
	f := follow(newMemo(t))
	var last *corev1.Pod
	for state := range 8 {
		want := changing(1, state)
		want.Finalizers = []string{"a-finalizer-that-is-there-from-the-beginning"}
		for i := range state / 3 {
			want.Finalizers = append(want.Finalizers, fmt.Sprint(i))
		}
		got := f.decode(t, want)
		require.Equal(t, want, got)
		if last != nil {
			require.True(t, sameMap(last.Annotations, got.Annotations), state)
		}
		last = got
	}
}

// TestChangesOfEveryType: each state of an object is the last one with a few edits, at any depth.
func TestChangesOfEveryType(t *testing.T) {
	random := source(t)
	fill := filler(random)
	passes(t, func() (decodes int) {
		memo := newMemo(t)
		memo.NeverRest()
		var all []made
		for gvk, data := range messages(t, fill) {
			var last any
			var notes sharing.Notes
			for range 24 {
				plain, ours, input := newObject(t, gvk).(message), newObject(t, gvk).(message), slices.Clone(data)
				require.NoError(t, plain.Unmarshal(data), gvk)
				var err error
				notes, err = memo.UnmarshalAfter(sharing.Last{Changes: true, Object: last, Notes: notes}, input, ours)
				require.NoError(t, err, gvk)
				clear(input)
				requireSame(t, gvk, plain, ours)
				last = ours
				all = append(all, made{ours, plain})
				for range random.Intn(3) {
					if next := edited(random, data); newObject(t, gvk).(message).Unmarshal(next) == nil {
						data = next
					}
				}
			}
		}
		requireUnchanged(t, all)
		return len(all)
	})
}

// edited is a message of which one field, or element, is gone, comes twice or has changed places
// with its neighbour. It may lie at any depth.
func edited(random *rand.Rand, data []byte) []byte {
	fields, ok := split(data)
	if !ok || len(fields) == 0 {
		return data
	}
	i := random.Intn(len(fields))
	switch f := &fields[i]; random.Intn(12) {
	case 0:
		fields = slices.Delete(fields, i, i+1)
	case 1:
		fields = slices.Insert(fields, i, *f)
	case 2, 3:
		if other := (i + 1) % len(fields); fields[other].number == f.number {
			fields[i], fields[other] = fields[other], fields[i]
		}
	default:
		if inner := edited(random, f.value); f.wire == 2 {
			f.value = inner
		}
	}
	return joined(fields)
}
