package main

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// floor is the least that a goroutine for each watcher costs, whatever cache it reads: a look-up of
// the node, and a send to a channel. It holds no objects, and has no history.
type floor struct {
	mu       sync.RWMutex
	watchers map[string]chan *corev1.Pod
}

func (f *floor) update(pod *corev1.Pod, _ int) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if w := f.watchers[pod.Spec.NodeName]; w != nil {
		w <- pod
	}
	return nil
}

func (f *floor) watch(_ context.Context, node, _ string) (func() (string, error), error) {
	w := make(chan *corev1.Pod, 8)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers[node] = w
	return func() (string, error) { return (<-w).ResourceVersion, nil }, nil
}
