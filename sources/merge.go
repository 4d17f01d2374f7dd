package sources

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/store"
)

// Pods is a complete state of one source.
type Pods = store.Snapshot[*corev1.Pod]

// state is one state of a source: its pods, and their order if they have one.
type state struct {
	pods  Pods
	order []*corev1.Pod // nil: by namespace and name
	// restored: the state is from a checkpoint, and the API server has not answered yet.
	restored bool
	at       time.Time // when it, or the oldest state that it replaces, was set
}

// compare returns the order in which the pods of the state are told.
func (s state) compare() func(a, b *corev1.Pod) int {
	if s.order == nil {
		return byName
	}
	rank := make(map[string]int, len(s.order))
	for i, pod := range slices.Backward(s.order) {
		rank[store.KeyOf(pod)] = i // of two with one name, the first counts
	}
	return func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(rank[store.KeyOf(a)], rank[store.KeyOf(b)]), byName(a, b))
	}
}

// merger turns the states of one source into differences from the state that the reader of Updates
// knows. It does no I/O and is not safe for concurrent use.
type merger interface {
	// plan is the difference between the told state and a new one: updates in the kubelet's order.
	// Updates of the plan before that were not sent are obsolete.
	plan(next state) []PodUpdate
	// sent notes that the reader has taken an update of the plan; it is called in order.
	sent(u PodUpdate)
}

// merge is the merger by default.
type merge struct {
	source string
	now    func() time.Time
	// marked: the pods are a kubelet's, and say of which of its sources they are.
	marked bool
	// told is the source's state as the reader knew it before the plan: the source's own objects.
	told Pods
	// given has, by key, each pod that the reader knows with the annotations of the merge.
	given map[string]*corev1.Pod
	// begun: the first state has been told.
	begun bool

	// The plan: the state that the reader knows at its end, the updates that have been sent, and
	// the number of the others.
	next Pods
	part []PodUpdate
	left int
}

func newMerge(source string, now func() time.Time) *merge {
	return &merge{source: source, now: now, given: map[string]*corev1.Pod{}}
}

func (m *merge) plan(next state) []PodUpdate {
	if len(m.part) > 0 { // the plan before was interrupted
		m.told = m.toldInPart()
	}
	ops := map[Op][]*corev1.Pod{}
	for c := range store.Diff(m.told, next.pods) {
		switch op := operation(c); op {
		case "":
		case Remove:
			ops[op] = append(ops[op], m.given[c.Key])
		default:
			ops[op] = append(ops[op], m.annotated(c))
		}
	}
	compare := next.compare()
	var plan []PodUpdate
	for _, op := range operations {
		if pods := ops[op]; len(pods) > 0 {
			slices.SortFunc(pods, compare)
			plan = append(plan, PodUpdate{Op: op, Source: m.source, Pods: pods})
		}
	}
	if len(plan) == 0 && !m.begun {
		plan = []PodUpdate{{Op: Add, Source: m.source, Pods: []*corev1.Pod{}}}
	}
	m.next, m.part, m.left = next.pods, nil, len(plan)
	if len(plan) == 0 {
		m.told = next.pods
	}
	return plan
}

// operation is the meaning of a change for an agent that runs the pods; empty: none.
func operation(c store.Change[*corev1.Pod]) Op {
	switch {
	case c.Deleted():
		return Remove
	case c.Added():
		return Add
	case !sameIntent(c.Old, c.New):
		if c.New.DeletionTimestamp != nil {
			return Delete
		}
		return Update
	case !apiequality.Semantic.DeepEqual(c.Old.Status, c.New.Status):
		return Reconcile
	}
	return ""
}

// sameIntent reports whether two states of a pod ask for the same: everything but status and
// bookkeeping. The kubelet compares spec, labels, the deletion, and the annotations without the
// node's own ones.
func sameIntent(a, b *corev1.Pod) bool {
	return apiequality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		maps.Equal(a.Labels, b.Labels) &&
		apiequality.Semantic.DeepEqual(a.DeletionTimestamp, b.DeletionTimestamp) &&
		apiequality.Semantic.DeepEqual(a.DeletionGracePeriodSeconds, b.DeletionGracePeriodSeconds) &&
		sameAnnotations(a.Annotations, b.Annotations)
}

func sameAnnotations(a, b map[string]string) bool {
	rest := func(from map[string]string) map[string]string {
		out := maps.Clone(from)
		for _, own := range []string{manifest.SourceAnnotation, manifest.SeenAnnotation, manifest.MirrorAnnotation} {
			delete(out, own)
		}
		return out
	}
	return maps.Equal(a, b) || maps.Equal(rest(a), rest(b))
}

// annotated is the new pod with the annotations of the merge. It is a shallow copy: the source's
// object is not changed.
func (m *merge) annotated(c store.Change[*corev1.Pod]) *corev1.Pod {
	pod := *c.New
	pod.Annotations = make(map[string]string, len(c.New.Annotations)+2)
	maps.Copy(pod.Annotations, c.New.Annotations)
	if !m.marked || pod.Annotations[manifest.SourceAnnotation] == "" {
		pod.Annotations[manifest.SourceAnnotation] = m.source
	}
	if before := m.given[c.Key]; !c.Added() && before != nil {
		pod.Annotations[manifest.SeenAnnotation] = before.Annotations[manifest.SeenAnnotation]
	} else {
		pod.Annotations[manifest.SeenAnnotation] = m.now().Format(time.RFC3339Nano)
	}
	return &pod
}

func (m *merge) sent(u PodUpdate) {
	m.begun = m.begun || !u.Restored
	for _, pod := range u.Pods {
		if u.Op == Remove {
			delete(m.given, store.KeyOf(pod))
		} else {
			m.given[store.KeyOf(pod)] = pod
		}
	}
	if m.left--; m.left == 0 {
		m.told, m.part = m.next, nil
		return
	}
	m.part = append(m.part, u)
}

// toldInPart is the state that the reader knows after a part of the plan.
func (m *merge) toldInPart() Pods {
	var known store.Indexer[*corev1.Pod]
	// None of the writes below can fail: the objects come from a store.
	_ = known.Replace(store.Items(m.told.Sorted()...), store.At(m.told.ResourceVersion()))
	for _, u := range m.part {
		for _, pod := range u.Pods {
			if u.Op == Remove {
				_ = known.Delete(pod)
			} else if now, ok := m.next.Get(store.KeyOf(pod)); ok {
				_ = known.Update(now)
			}
		}
	}
	return known.Snapshot()
}

func byName(a, b *corev1.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
