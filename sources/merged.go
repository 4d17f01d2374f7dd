package sources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/manifest"
)

// MergedPod is one pod of the node, with every source that declares it.
type MergedPod struct {
	// Pod is the pod of the first source that declares it, in the order of the inputs. If only a
	// mirror is left, Pod is the mirror.
	Pod *corev1.Pod
	// Sources names the sources that declare the pod, in the order of the inputs. A mirror declares
	// nothing: if Sources is empty, the pod must not run.
	Sources []string
	// Mirror is the API server's copy of a static pod, or nil.
	Mirror *corev1.Pod
	// MirrorCurrent: Mirror is a copy of Pod, and not of an older manifest.
	MirrorCurrent bool
}

// Status is the live status: the API server's. For a static pod it is the status of its mirror.
func (p MergedPod) Status() corev1.PodStatus {
	if p.Mirror != nil {
		return p.Mirror.Status
	}
	return p.Pod.Status
}

// Merged is a snapshot of the node: one entry for each pod, ordered by namespace and name. It is
// made of the newest state of each source, read from Updates or not. Pods are as their sources set
// them, without the annotations of the merge; they are shared and read-only. Merged takes O(n log
// n). It is safe for concurrent use.
//
// A mirror pod has [manifest.MirrorAnnotation] and comes from a [MirrorHolder]. It is paired with
// the static pod of its name. The value of that annotation is the [manifest.HashAnnotation] of the
// static pod that it mirrors; if the two differ, the mirror is stale.
func (s *Sources) Merged() []MergedPod {
	byKey := map[string]*MergedPod{}
	for _, f := range s.list() {
		for key, pod := range f.state().All() {
			one := byKey[key]
			if one == nil {
				one = &MergedPod{}
				byKey[key] = one
			}
			one.add(f, pod)
		}
	}
	all := make([]MergedPod, 0, len(byKey))
	for _, one := range byKey {
		one.pair()
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b MergedPod) int { return byName(a.Pod, b.Pod) })
	return all
}

func (p *MergedPod) add(f *feed, pod *corev1.Pod) {
	if _, mirror := pod.Annotations[manifest.MirrorAnnotation]; mirror && f.mirrors {
		p.Mirror = pod
		return
	}
	if p.Pod == nil {
		p.Pod = pod
	}
	p.Sources = append(p.Sources, f.name)
}

func (p *MergedPod) pair() {
	if p.Mirror == nil {
		return
	}
	if p.Pod == nil {
		p.Pod = p.Mirror
		return
	}
	p.MirrorCurrent = p.Mirror.Annotations[manifest.MirrorAnnotation] == p.Pod.Annotations[manifest.HashAnnotation]
}
