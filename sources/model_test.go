package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/store"
)

// variant is everything about a pod of the model that a reader can tell.
type variant struct{ name, uid, image, label, phase, deleted, finalizer int }

// intent is what the pod asks for; what is left is its status and its bookkeeping.
func (v variant) intent() variant {
	v.phase, v.finalizer = 0, 0
	return v
}

func (v variant) known() variant {
	v.finalizer = 0
	return v
}

// modelPods are all pods that the model knows, shared by all its states.
type modelPods struct {
	pods     map[variant]*corev1.Pod
	variants map[*corev1.Pod]variant
	all      []variant
}

func newModelPods() *modelPods {
	m := &modelPods{pods: map[variant]*corev1.Pod{}, variants: map[*corev1.Pod]variant{}}
	for i := range 3 << 6 {
		bit := func(n int) int { return i >> n & 1 }
		v := variant{name: i >> 6, uid: bit(0), image: bit(1), label: bit(2), phase: bit(3), deleted: bit(4), finalizer: bit(5)}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("p", v.name), UID: types.UID(fmt.Sprint("uid", v.uid)),
			Labels: map[string]string{"l": fmt.Sprint(v.label)}, ResourceVersion: fmt.Sprint(i),
		}}
		pod.Spec.NodeName = fmt.Sprint(v.image)
		pod.Status.Message = fmt.Sprint(v.phase)
		if v.deleted == 1 {
			pod.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_900_000_000, 0)}
		}
		if v.finalizer == 1 {
			pod.Finalizers = []string{"f"}
		}
		m.pods[v], m.variants[pod] = pod, v
		m.all = append(m.all, v)
	}
	return m
}

// of recognises a pod that was given out.
func (m *modelPods) of(pod *corev1.Pod) variant {
	var v variant
	v.name = int(pod.Name[1] - '0')
	v.uid = int(pod.UID[len(pod.UID)-1] - '0')
	v.image = int(pod.Spec.NodeName[0] - '0')
	v.label = int(pod.Labels["l"][0] - '0')
	v.phase = int(pod.Status.Message[0] - '0')
	v.deleted = boolInt(pod.DeletionTimestamp != nil)
	v.finalizer = len(pod.Finalizers)
	return v
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// reader is what somebody who reads the updates has built from them.
type reader struct {
	model *modelPods
	held  map[int]variant // by name
}

// take applies an update, which must make sense to the reader.
func (r *reader) take(u PodUpdate) error {
	for _, pod := range u.Pods {
		v := r.model.of(pod)
		old, had := r.held[v.name]
		wrong := func(why string) error { return fmt.Errorf("%s of %+v over %+v: %s", u.Op, v, old, why) }
		same := had && old.uid == v.uid
		switch {
		case u.Op == Add && had:
			return wrong("it is there")
		case u.Op == Remove && (!had || old != v):
			return wrong("it is not what was told")
		case u.Op != Add && !same:
			return wrong("it is not there")
		case u.Op == Reconcile && (old.intent() != v.intent() || old.phase == v.phase):
			return wrong("not only the status has changed")
		case (u.Op == Update || u.Op == Delete) && old.intent() == v.intent():
			return wrong("nothing has changed")
		case u.Op == Delete && v.deleted == 0, u.Op == Update && v.deleted == 1:
			return wrong("the deletion says otherwise")
		}
		if u.Op == Remove {
			delete(r.held, v.name)
		} else {
			r.held[v.name] = v
		}
	}
	return nil
}

// agrees compares what the reader holds with a state that it was told completely.
func (r *reader) agrees(now []variant) error {
	if len(r.held) != len(now) {
		return fmt.Errorf("holds %v, but was told %v", r.held, now)
	}
	for _, v := range now {
		if held, ok := r.held[v.name]; !ok || held.known() != v.known() {
			return fmt.Errorf("holds %v, but was told %v", r.held, now)
		}
	}
	return nil
}

// TestMergeAgainstAModel makes random states of one source, and a reader who takes all of a change,
// or a part of it before the next state comes. Whatever was taken makes sense, and once all was,
// the reader holds the state.
func TestMergeAgainstAModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	model := newModelPods()
	copies := map[*corev1.Pod]*corev1.Pod{}
	for pod := range model.variants {
		copies[pod] = pod.DeepCopy()
	}
	at := time.Unix(1_800_000_000, 0)
	for range 100_000 {
		m := newMerge("s", func() time.Time { return at })
		r := &reader{model: model, held: map[int]variant{}}
		var source store.Indexer[*corev1.Pod]
		for last := 1 + random.IntN(2); last >= 0; last-- {
			now := model.next(random, &source)
			plan := m.plan(state{pods: source.Snapshot()})
			if err := inOrder(plan); err != nil {
				require.NoError(t, err)
			}
			taken := len(plan)
			if last > 0 && random.IntN(2) == 0 {
				taken = random.IntN(len(plan) + 1)
			}
			for _, u := range plan[:taken] {
				require.NoError(t, r.take(u))
				m.sent(u)
			}
			if taken == len(plan) { // else the plan is interrupted
				require.NoError(t, r.agrees(now))
			}
		}
	}
	for pod, copied := range copies {
		require.Equal(t, copied, pod, "a pod of the source was modified")
	}
}

// next moves the source to a random state, by small steps or by a replacement.
func (m *modelPods) next(random *rand.Rand, source *store.Indexer[*corev1.Pod]) (now []variant) {
	if random.IntN(4) == 0 {
		var pods []*corev1.Pod
		for _, v := range random.Perm(len(m.all))[:random.IntN(3)] {
			pods = append(pods, m.pods[m.all[v]])
		}
		_ = source.Replace(store.Items(pods...), store.At(""))
	} else {
		for range 1 + random.IntN(2) {
			pod := m.pods[m.all[random.IntN(len(m.all))]]
			if random.IntN(3) == 0 {
				_ = source.Delete(pod)
			} else {
				_ = source.Update(pod)
			}
		}
	}
	for _, pod := range source.Snapshot().All() {
		now = append(now, m.variants[pod])
	}
	return now
}

// inOrder checks that a plan has each operation at most once, in the kubelet's order, with its pods
// in the order of names.
func inOrder(plan []PodUpdate) error {
	order := []Op{Remove, Add, Update, Delete, Reconcile}
	last := -1
	for _, u := range plan {
		at := slices.Index(order, u.Op)
		if at <= last || !slices.IsSortedFunc(u.Pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) }) {
			return fmt.Errorf("out of order: %v", plan)
		}
		last = at
	}
	return nil
}

// TestReaderThatStallsAtRandom runs the whole: a source that sets states as it likes, and a reader
// who sleeps now and then.
func TestReaderThatStallsAtRandom(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for run := range uint64(20) {
		model := newModelPods()
		source := &randomSource{model: model, random: rand.New(rand.NewPCG(seed, run)), states: 500}
		s := New("node-1", Custom(source))
		done := make(chan error, 1)
		go func() { done <- s.Run(t.Context()) }()
		r := &reader{model: model, held: map[int]variant{}}
		stalls := rand.New(rand.NewPCG(seed, run+1000))
		for u := range s.Updates() {
			require.NoError(t, r.take(u))
			for range stalls.IntN(200) / 190 * 300 {
				runtime.Gosched()
			}
		}
		require.ErrorIs(t, <-done, errScriptEnds)
		require.NoError(t, r.agrees(source.now))
	}
}

// randomSource sets random states, and ends.
type randomSource struct {
	model  *modelPods
	random *rand.Rand
	states int
	now    []variant // its last state, once Run has returned
}

var errScriptEnds = errors.New("the script ends here")

func (s *randomSource) Name() string   { return "s" }
func (s *randomSource) Report() Report { return Report{} }

func (s *randomSource) Run(_ context.Context, sink *Sink) error {
	var pods store.Indexer[*corev1.Pod]
	for range s.states {
		s.now = s.model.next(s.random, &pods)
		sink.Set(pods.Snapshot())
		for range s.random.IntN(20) / 19 * 100 {
			runtime.Gosched()
		}
	}
	return errScriptEnds
}
