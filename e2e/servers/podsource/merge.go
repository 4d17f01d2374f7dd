package main

import (
	"context"
	"reflect"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/types"
)

// state is the complete state of one source.
type state struct {
	Source string        `json:"source"`
	Pods   []*corev1.Pod `json:"pods"`
	// Same has, for each of the pods that is the same object as one of an earlier state, its place
	// there; a source that keeps its objects hands them over again, and the merge writes into them.
	Same []place `json:"same"`
}

// place is a pod of an earlier state, both from 0.
type place struct {
	Pod   int `json:"pod"` // which pod of this state
	State int `json:"state"`
	As    int `json:"as"` // which pod of that state it is
}

// update is a types.PodUpdate.
type update struct {
	Op     string        `json:"op"`
	Source string        `json:"source"`
	Pods   []*corev1.Pod `json:"pods"`
}

// merge gives states to the kubelet's own merge, one after the other, and returns the updates that
// come of them. No two pods of the last state may have one UID.
func merge(states []state) (updates []update) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	merged := config.NewPodConfig(&record.FakeRecorder{}, startup{})
	last := states[len(states)-1]
	// Who takes the last state once more is done with the one before, and it is no news.
	for _, s := range append(states, state{Source: last.Source, Pods: copies(last.Pods)}) {
		for _, same := range s.Same {
			s.Pods[same.Pod] = states[same.State].Pods[same.As]
		}
		channel := reflect.ValueOf(merged.Channel(ctx, s.Source))
		next := reflect.New(channel.Type().Elem()).Elem()
		next.FieldByName("Pods").Set(reflect.ValueOf(s.Pods))
		for !channel.TrySend(next) {
			updates = append(updates, pending(merged.Updates())...) // there is room for fifty
			runtime.Gosched()
		}
	}
	return append(updates, pending(merged.Updates())...)
}

func copies(pods []*corev1.Pod) (all []*corev1.Pod) {
	for _, pod := range pods {
		all = append(all, pod.DeepCopy())
	}
	return all
}

var names = map[types.PodOperation]string{
	types.ADD: "ADD", types.DELETE: "DELETE", types.REMOVE: "REMOVE", types.UPDATE: "UPDATE", types.RECONCILE: "RECONCILE",
}

func pending(from <-chan types.PodUpdate) (all []update) {
	for {
		select {
		case u := <-from:
			all = append(all, update{names[u.Op], u.Source, u.Pods})
		default:
			return all
		}
	}
}

// startup is told of pods that the kubelet measures the start of.
type startup struct{}

func (startup) ObservedPodOnWatch(*corev1.Pod, time.Time) {}
