package sources

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/store"
)

// entry is what one manifest declares: a file, or the body behind a URL.
type entry struct {
	path string
	// pods are the manifest's pods; where a part of it is rejected, what that part declared when it was last good.
	pods     []*corev1.Pod
	problems []error
}

// take brings the entry up to date with a manifest that was read. A pod that was there stays when it may be what a
// rejected part was to declare: a half-written edit must not stop it.
func (e *entry) take(pods []*corev1.Pod, rejected []error) {
	e.problems = nil
	kept := e.pods
	e.pods = pods
	if len(rejected) == 0 {
		return
	}
	e.problems = append(e.problems, rejected...)
	for _, pod := range kept {
		if !declares(pods, pod) {
			e.pods = append(e.pods[:len(e.pods):len(e.pods)], pod)
		}
	}
}

// fail keeps everything: the manifest could not be read.
func (e *entry) fail(err error) { e.problems = []error{err} }

func declares(pods []*corev1.Pod, pod *corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return store.KeyOf(p) == store.KeyOf(pod) })
}

// table makes one state of many entries: where two declare a pod of one name, the first path has it, and the other
// stands by.
func table(entries []*entry) (pods Pods, problems []error) {
	var all store.Indexer[*corev1.Pod]
	owner := map[string]string{}
	var first []*corev1.Pod
	for _, e := range entries {
		problems = append(problems, e.problems...)
		for _, pod := range e.pods {
			key := store.KeyOf(pod)
			if path, taken := owner[key]; taken {
				problems = append(problems, fmt.Errorf("%s: pod %s is declared by %s already and stands by", e.path, key, path))
				continue
			}
			owner[key] = e.path
			first = append(first, pod)
		}
	}
	// Replace cannot fail: a manifest's pods have names.
	_ = all.Replace(store.Items(first...), store.At(""))
	return all.Snapshot(), problems
}
