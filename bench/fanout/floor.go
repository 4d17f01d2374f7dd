package main

import (
	"context"
	"runtime"
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

// polledFloor is the least without goroutines: a look-up of the node, and a queue for as many
// workers as there are processors.
type polledFloor struct {
	floor
	waiting map[string]*floorWatch
	ready   chan *floorWatch
}

type floorWatch struct {
	mu     sync.Mutex
	queued bool
	pods   []*corev1.Pod
	take   func(version string)
}

func newPolledFloor() *polledFloor {
	ready := make(chan *floorWatch, 1<<17) // room for every watcher of a row
	f := &polledFloor{waiting: map[string]*floorWatch{}, ready: ready}
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for w := range f.ready {
				w.run()
			}
		}()
	}
	return f
}

func (f *polledFloor) poll(node, _ string, take func(string), _ func(error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting[node] = &floorWatch{take: take}
	return nil
}

func (f *polledFloor) update(pod *corev1.Pod, _ int) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if w := f.waiting[pod.Spec.NodeName]; w != nil && w.add(pod) {
		f.ready <- w
	}
	return nil
}

// add reports whether the watch is to be queued.
func (w *floorWatch) add(pod *corev1.Pod) (idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods = append(w.pods, pod)
	idle, w.queued = !w.queued, true
	return idle
}

func (w *floorWatch) run() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, pod := range w.pods {
		w.take(pod.ResourceVersion)
		w.pods[i] = nil
	}
	w.pods, w.queued = w.pods[:0], false
}
