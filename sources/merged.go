package sources

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/manifest"
)

// MergedPod is one pod of the node, with every source that declares it.
type MergedPod struct {
	// Pod is what the first source that declares it says, in the order in which the sources were given. Where only a mirror
	// is left of a pod, it is that.
	Pod *corev1.Pod
	// Sources are the names of the sources that declare the pod, in the order in which they were given. A mirror declares
	// nothing: without any other source this is empty, and the pod is not to run.
	Sources []string
	// Mirror is the API server's copy of a pod from a manifest; nil where there is none.
	Mirror *corev1.Pod
	// MirrorCurrent: Mirror is of Pod as it is now, and not of an older manifest.
	MirrorCurrent bool
}

// Status is the live status: what the API server holds of the pod, by its mirror if it comes from a manifest.
func (p MergedPod) Status() corev1.PodStatus {
	if p.Mirror != nil {
		return p.Mirror.Status
	}
	return p.Pod.Status
}

// Merged is a snapshot of the node: one entry per pod, ordered by namespace and name, made of the newest state of each
// source, whether that has been read from Updates or not. Pods are as their sources set them, without the annotations of
// the merge; they are shared and read-only. Making it is O(n log n). It is safe for concurrent use.
//
// A mirror pod is one with [manifest.MirrorAnnotation]. It is paired with the pod of its name from a manifest; whether it is up to
// date shows in that annotation, which holds the pod's [manifest.HashAnnotation].
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
