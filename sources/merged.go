package sources

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources/internal/live"
	"github.com/tributary-go/tributary/sources/manifest"
	"github.com/tributary-go/tributary/store"
)

// MergedPod is one pod of the node, with every source that has it.
type MergedPod struct {
	// Pod has the metadata and spec of the pod. It is of the first source that declares it, in the
	// order of the inputs. It is Live if no other source has the pod, or if Live has a newer
	// resource version. If only a mirror is left, Pod is the mirror.
	Pod *corev1.Pod
	// PodFrom and StatusFrom name the sources of Pod and of [MergedPod.Status].
	PodFrom, StatusFrom string
	// Sources names the sources that have the pod, in the order of the inputs. A mirror declares
	// nothing: if Sources is empty, the pod must not run.
	Sources []string
	// Mirror is the API server's copy of a static pod, or nil.
	Mirror *corev1.Pod
	// MirrorCurrent: Mirror is a copy of Pod, and not of an older manifest.
	MirrorCurrent bool
	// Live is the pod as the kubelet has it, from a [StatusHolder], or nil.
	Live *corev1.Pod
}

// Status is the newest status that a source has. The kubelet writes it, so Live has it, unless the
// API server or a mirror mentions a later moment: a kubelet that is polled may be behind. Without
// Live it is the API server's; for a static pod it is the status of its mirror.
func (p MergedPod) Status() corev1.PodStatus { return p.newest().Status }

// newest is the pod with the newest status.
func (p MergedPod) newest() *corev1.Pod {
	written := p.Pod
	if p.Mirror != nil {
		written = p.Mirror
	}
	if p.Live != nil && live.Compare(&p.Live.Status, &written.Status) >= 0 {
		return p.Live
	}
	return written
}

// Merged is a snapshot of the node: one entry for each pod, ordered by namespace and name. It is
// made of the newest state of each source, read from Updates or not. Pods are as their sources set
// them, without the annotations of the merge; they are shared and read-only. Merged takes O(n log
// n). It is safe for concurrent use.
//
// A mirror pod has [manifest.MirrorAnnotation] and comes from a [MirrorHolder]. It is paired with
// the static pod of its name. The value of that annotation is the [manifest.HashAnnotation] of the
// static pod that it mirrors; if the two differ, the mirror is stale.
//
// The pod of a [StatusHolder] is paired with the declared pod of its name and UID. The UID of a
// static pod does not matter, as each reader of its manifest makes one up. If two pods of a name
// have different UIDs, the one that was created later counts.
func (s *Sources) Merged() []MergedPod {
	byKey := map[string]*joining{}
	for _, f := range s.list() {
		for key, pod := range f.state().All() {
			one := byKey[key]
			if one == nil {
				one = &joining{}
				byKey[key] = one
			}
			one.add(f, pod)
		}
	}
	all := make([]MergedPod, 0, len(byKey))
	for _, one := range byKey {
		all = append(all, one.join())
	}
	slices.SortFunc(all, func(a, b MergedPod) int { return byName(a.Pod, b.Pod) })
	return all
}

// UIDs yields the UIDs by which the pod is known. A static pod has up to three: as its manifest,
// the kubelet and its mirror have it. A mirror names the one by which the kubelet runs the pod.
func (p MergedPod) UIDs() iter.Seq[types.UID] {
	return func(yield func(types.UID) bool) {
		for _, pod := range []*corev1.Pod{p.Pod, p.Live, p.Mirror} {
			if pod == nil {
				continue
			}
			for _, uid := range []types.UID{pod.UID, types.UID(pod.Annotations[manifest.MirrorAnnotation])} {
				if uid != "" && !yield(uid) {
					return
				}
			}
		}
	}
}

// Is reports whether two states are of one pod: they have a UID in common.
func (p MergedPod) Is(other MergedPod) bool {
	for uid := range p.UIDs() {
		for one := range other.UIDs() {
			if uid == one {
				return true
			}
		}
	}
	return false
}

// merged joins the pods of one key (namespace/name) in the states of feeds. It is zero if there are
// none.
func merged(feeds []*feed, key string, state func(*feed) Pods) MergedPod {
	var all joining
	for _, f := range feeds {
		if pod, ok := state(f).Get(key); ok {
			all.add(f, pod)
		}
	}
	if all.empty() {
		return MergedPod{}
	}
	return all.join()
}

// from is a pod of one source.
type from struct {
	*feed
	pod *corev1.Pod // nil: no source has it
}

// joining is the pods of one name, each of the first source that has it.
type joining struct {
	declared, mirror, live from
	sources                []string
}

func (j *joining) empty() bool {
	return j.declared.pod == nil && j.mirror.pod == nil && j.live.pod == nil
}

func (j *joining) add(f *feed, pod *corev1.Pod) {
	first := &j.declared
	_, mirror := pod.Annotations[manifest.MirrorAnnotation]
	switch {
	case mirror && f.mirrors:
		j.mirror = from{f, pod}
		return
	case f.live:
		first = &j.live
	}
	if first.pod == nil {
		*first = from{f, pod}
	}
	j.sources = append(j.sources, f.name)
}

func (j *joining) join() MergedPod {
	j.choose()
	p := MergedPod{
		Pod: j.declared.pod, PodFrom: j.declared.name, StatusFrom: j.declared.name,
		Sources: j.sources, Mirror: j.mirror.pod, Live: j.live.pod,
	}
	p.MirrorCurrent = p.Mirror != nil && p.Mirror != p.Pod &&
		p.Mirror.Annotations[manifest.MirrorAnnotation] == p.Pod.Annotations[manifest.HashAnnotation]
	switch p.newest() {
	case p.Live:
		p.StatusFrom = j.live.name
	case p.Mirror:
		p.StatusFrom = j.mirror.name
	}
	return p
}

// choose makes declared the pod that counts, and drops the live pod if it is another one.
func (j *joining) choose() {
	switch {
	case j.declared.pod == nil && j.live.pod == nil:
		j.declared = j.mirror
	case j.declared.pod == nil:
		j.declared = j.live
	case j.live.pod == nil:
	case j.isStatic():
	case j.declared.pod.UID == j.live.pod.UID:
		if store.VersionOf(j.declared.pod).Before(store.VersionOf(j.live.pod)) {
			j.declared = j.live
		}
	case j.live.pod.CreationTimestamp.After(j.declared.pod.CreationTimestamp.Time):
		j.declared = j.live
	default:
		j.live = from{}
	}
}

// isStatic reports whether both pods are static ones.
func (j *joining) isStatic() bool {
	origin := j.live.pod.Annotations[manifest.SourceAnnotation]
	return !j.declared.mirrors && origin != "" && origin != APISource
}
