package sources

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/store"
)

// LikeKubelet makes the sources of this package and the merge do what the kubelet 1.36 does, where the default is
// kinder: bad files lose their pods at the next period, leftovers are manifests, an empty answer means no pods, the first
// document of a file counts alone, redirects are followed anywhere, and so on. It is for those who must see exactly what a
// kubelet sees. What it takes for a pod, when, and in which updates is the kubelet's; these are not:
//
//   - Messages never hold what a manifest, a header or a URL's password says. The kubelet logs some of it.
//   - A reader that is 64 states behind gets merged ones, however long it takes. The kubelet's channel holds 50 updates, and
//     then all of its sources wait.
//   - The pods of an update that the kubelet puts into random order are ordered by namespace and name.
//   - The API server is followed by this library's reflector, with its shorter delays after an outage.
//   - Two states of a pod that differ in the spelling of a quantity alone, or in an empty list or map where the other has none, are one.
//   - UIDs and config.hash are stable hashes of this library's own.
//   - Run ends, even while the file source hangs on a FIFO.
//   - At each event, a file is read as it is when the event is looked at: which states of a file that is written in pieces
//     become pods is a matter of timing, for the kubelet as well.
//
// [static.WithGrace] has no effect with it.
func LikeKubelet() Option { return option(func(s *Sources) { s.likeKubelet = true }) }

// kubeletMerge is the kubelet's own merge. Pods are the same when their UIDs are, whatever their names; and of a pod that
// it knows it takes over spec, labels, annotations, deletion and status, and leaves the rest as it was first seen.
type kubeletMerge struct {
	source string
	now    func() time.Time
	told   map[types.UID]*corev1.Pod // as the reader got them
	// first is the source's own object that each of told was made of. The kubelet changes that object, so that it is not
	// what its manifest says any more, and is never a change of itself.
	first map[types.UID]*corev1.Pod
	begun bool
}

func newKubeletMerge(source string, now func() time.Time) *kubeletMerge {
	return &kubeletMerge{source: source, now: now, told: map[types.UID]*corev1.Pod{}, first: map[types.UID]*corev1.Pod{}}
}

func (m *kubeletMerge) plan(next state) []PodUpdate {
	pods := next.order
	if pods == nil {
		pods = next.pods.Sorted()
	}
	ops := map[Op][]*corev1.Pod{}
	// now has the pods that are told of already, as they become. Where two of a state have one UID, the second is a change of
	// the first, and both are told in their last form.
	names, now := map[string]bool{}, map[types.UID]*corev1.Pod{}
	for _, pod := range pods {
		if names[store.KeyOf(pod)] {
			continue // of two with one name, the first counts
		}
		names[store.KeyOf(pod)] = true
		known, ok := m.told[pod.UID]
		if !ok {
			ops[Add] = append(ops[Add], m.added(pod))
			m.first[pod.UID] = pod // of two with one UID, the last
			continue
		}
		if now[pod.UID] == nil {
			now[pod.UID] = new(corev1.Pod)
			*now[pod.UID] = *known
		}
		if pod == m.first[pod.UID] {
			continue
		}
		if op := change(now[pod.UID], pod); op != "" {
			ops[op] = append(ops[op], now[pod.UID])
		}
	}
	for uid, pod := range m.told {
		if now[uid] == nil {
			ops[Remove] = append(ops[Remove], pod)
		}
	}
	slices.SortFunc(ops[Remove], byName)
	var plan []PodUpdate
	for _, op := range []Op{Remove, Add, Update, Delete, Reconcile} {
		if len(ops[op]) > 0 {
			plan = append(plan, PodUpdate{Op: op, Source: m.source, Pods: ops[op]})
		}
	}
	if len(plan) == 0 && !m.begun {
		plan = []PodUpdate{{Op: Add, Source: m.source, Pods: []*corev1.Pod{}}}
	}
	return plan
}

func (m *kubeletMerge) added(pod *corev1.Pod) *corev1.Pod {
	now := *pod
	now.Annotations = withOwn(pod.Annotations, map[string]string{
		manifest.SourceAnnotation: m.source, manifest.SeenAnnotation: m.now().Format(time.RFC3339Nano),
	})
	return &now
}

// change makes of known what the kubelet makes of it when it sees pod, and returns what that means.
func change(known, pod *corev1.Pod) Op {
	same := sameIntent(known, pod)
	if same && apiequality.Semantic.DeepEqual(known.Status, pod.Status) {
		return ""
	}
	known.Status = pod.Status
	if same {
		return Reconcile
	}
	known.Spec, known.Labels, known.Generation = pod.Spec, pod.Labels, pod.Generation
	known.DeletionTimestamp, known.DeletionGracePeriodSeconds = pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds
	known.Annotations = withOwn(pod.Annotations, known.Annotations)
	if pod.DeletionTimestamp != nil {
		return Delete
	}
	return Update
}

// withOwn is annotations with those that are a node's own notes from elsewhere.
func withOwn(annotations, own map[string]string) map[string]string {
	all := make(map[string]string, len(annotations)+2)
	for key, value := range annotations {
		all[key] = value
	}
	for _, key := range []string{manifest.SourceAnnotation, manifest.SeenAnnotation, manifest.MirrorAnnotation} {
		if value, ok := own[key]; ok {
			all[key] = value
		}
	}
	return all
}

func (m *kubeletMerge) sent(u PodUpdate) {
	m.begun = true
	for _, pod := range u.Pods {
		if u.Op == Remove {
			delete(m.told, pod.UID)
			delete(m.first, pod.UID)
		} else {
			m.told[pod.UID] = pod
		}
	}
}

// What was told is noted as it is sent, so that nothing is left to be done.
func (m *kubeletMerge) settled(state)                  {}
func (m *kubeletMerge) interrupted(state, []PodUpdate) {}
