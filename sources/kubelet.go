package sources

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/store"
)

// LikeKubelet makes the sources of this package, and the merge, behave like the kubelet; its
// release is that of [WithRelease]. By default they are kinder. With it, bad files lose their pods
// at the next interval, leftovers are manifests, an empty answer means no pods, only the first
// document of a file counts, redirects are followed anywhere, and so on. Use it to see exactly what
// a kubelet sees: which pods, when, and in which updates. These details are not the kubelet's:
//
//   - Messages never quote a manifest, a header or the password of a URL. The kubelet logs some of
//     them.
//   - The pending states of a reader that is 64 states behind are coalesced, however long it takes.
//     The kubelet's channel holds 50 updates, and then all of its sources wait.
//   - The pods of an update are ordered by namespace and name. The kubelet orders them at random.
//   - The reflector of this library follows the API server, with its shorter delays after an
//     outage.
//   - Two states of a pod are equal if they differ only in the spelling of a quantity, or if one
//     has an empty list or map and the other has none.
//   - UIDs and config.hash are stable hashes of this library.
//   - Run ends even while the file source hangs on a FIFO.
//   - After each event a file is read as it is at that moment. If a file is written in pieces,
//     timing decides which pieces become pods, for the kubelet as well.
//
// [static.WithGrace] has no effect with it.
func LikeKubelet() Option { return option(func(s *Sources) { s.likeKubelet = true }) }

// WithRelease has manifests of files and URLs read by the rules of one release of the kubelet: its
// defaults, its fields and its refusals. version is the release, such as "1.37", or the version of
// the node's kubelet, such as "v1.37.2", which a Node has in status.nodeInfo.kubeletVersion. Run
// refuses any other release than 1.36, 1.37 and 1.38. Default: a pod that one of them accepts is a
// pod, by the first that does; see [manifest.Release].
func WithRelease(version string) Option {
	return option(func(s *Sources) {
		release, err := manifest.ParseRelease(version)
		if s.release = release; err != nil {
			s.missing = errors.Join(s.missing, fmt.Errorf("sources: WithRelease: %w", err))
		}
	})
}

// kubeletMerge is the kubelet's own merge. Two pods are the same if their UIDs are, whatever their
// names. A known pod takes over spec, labels, annotations, deletion and status of its new state;
// all other fields stay as they were first seen.
type kubeletMerge struct {
	source string
	now    func() time.Time
	told   map[types.UID]*corev1.Pod // as the reader got them
	// first has the source's own object of each told pod. The kubelet changes that object, so that
	// it no longer equals its manifest and is never a change of itself.
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
	// now has the next form of the told pods. If two pods of a state have one UID, the second is a
	// change of the first, and both are told in their last form.
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
	for _, op := range operations {
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

// change updates known as the kubelet does when it sees pod, and returns the operation.
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

// withOwn is annotations, with the node's own ones taken from own.
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
