package main

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/config"
)

// present asks for the pods of a folder that another process changes.
type present struct {
	Path string `json:"path"`
	// Mark is the image of a pod in the folder. Its file was the last to change.
	Mark string `json:"mark"`
	// Restarted: the kubelet has been restarted.
	Restarted bool `json:"restarted"`
}

// settled is how many equal states in a row end the wait for the events of earlier changes.
const settled = 8

// folders has the kubelet's own file source of each folder. A source waits until its next state is
// taken, so it costs nothing between two questions.
type folders map[string]results

// ask returns the pods that the kubelet runs once it has looked at everything.
func (f folders) ask(p present) (a answer) {
	source, ok := f[p.Path] // the one of a kubelet that is gone waits for ever
	if !ok || p.Restarted {
		source = newResults(config.NewSourceFile)
		source.start(config.NewSourceFile, p.Path, node, period)
		f[p.Path] = source
	}
	last, equal := "", 0
	for equal < settled {
		a = answer{}
		if source.either(&a, reflect.Value{}); a.Rejected != "" || !p.marked(a.Pods) {
			equal = 0
			continue
		}
		var pods []string
		for _, pod := range a.Pods {
			pods = append(pods, string(pod.UID)+" "+pod.Namespace+"/"+pod.Name)
		}
		slices.Sort(pods)
		if now := strings.Join(pods, "\n"); now != last {
			last, equal = now, 0
		}
		equal++
	}
	return a
}

func (p present) marked(pods []*corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image == p.Mark })
}
