package controller_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
)

// source is a collection of pods in memory, without a server. It outlives a bubble.
type source struct {
	mu      sync.Mutex
	pods    map[string]pod
	history []listwatch.Event[pod] // change n is history[n-1]
	changed chan struct{}          // of the bubble in which watches run
}

func newSource() *source { return &source{pods: map[string]pod{}} }

// put creates a pod, or gives it another label.
func (s *source) put(name, label string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, uid := watch.Modified, types.UID(strconv.Itoa(len(s.history)))
	if old := s.pods[name]; old != nil {
		uid = old.UID
	} else {
		kind = watch.Added
	}
	s.pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, Labels: map[string]string{"of": label}}}
	s.note(kind, s.pods[name])
}

func (s *source) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[name].DeepCopy()
	delete(s.pods, name)
	s.note(watch.Deleted, p)
}

func (s *source) note(kind watch.EventType, p pod) {
	p.ResourceVersion = strconv.Itoa(len(s.history) + 1)
	s.history = append(s.history, listwatch.Event[pod]{Type: kind, Object: p, ResourceVersion: p.ResourceVersion})
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// leave ends the use of the source in a bubble.
func (s *source) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = nil
}

// now is the label of each pod.
func (s *source) now() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for name, p := range s.pods {
		all[name] = p.Labels["of"]
	}
	return all
}

func (s *source) version(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pods[name].ResourceVersion
}

func (s *source) IsWatchListSemanticsUnSupported() bool { return true }

func (s *source) List(context.Context, metav1.ListOptions) listwatch.List[pod] {
	s.mu.Lock()
	defer s.mu.Unlock()
	pods, version := slices.Collect(maps.Values(s.pods)), strconv.Itoa(len(s.history))
	return listwatch.List[pod]{
		Meta: func() metav1.ListMeta { return metav1.ListMeta{ResourceVersion: version} },
		Items: func(yield func(pod, error) bool) {
			for _, p := range pods {
				if !yield(p, nil) {
					return
				}
			}
		},
	}
}

func (s *source) Watch(ctx context.Context, o metav1.ListOptions) iter.Seq2[listwatch.Event[pod], error] {
	return func(yield func(listwatch.Event[pod], error) bool) {
		next, _ := strconv.Atoi(o.ResourceVersion)
		for {
			s.mu.Lock()
			events := s.history[next:]
			if s.changed == nil {
				s.changed = make(chan struct{})
			}
			changed := s.changed
			s.mu.Unlock()
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
			if next += len(events); len(events) > 0 {
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}
