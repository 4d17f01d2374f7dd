package robustness_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/e2e/robustness"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

type object = *corev1.ConfigMap

// contents are what one reader saw of each version. Two contents of one version are a fault.
type contents struct {
	mu        sync.Mutex
	byVersion map[string]robustness.Content
	conflicts []string
}

func newContents() *contents { return &contents{byVersion: map[string]robustness.Content{}} }

func contentOf(obj object) robustness.Content {
	count, _ := strconv.ParseInt(obj.Data["n"], 10, 64)
	return robustness.Content{Value: obj.Data["v"], Count: count}
}

func (c *contents) see(obj object) {
	if obj == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now, version := contentOf(obj), obj.ResourceVersion
	if before, known := c.byVersion[version]; known && before != now {
		c.conflicts = append(c.conflicts, fmt.Sprintf("%s at version %s: %v and %v", store.KeyOf(obj), version, before, now))
	}
	c.byVersion[version] = now
}

// all returns what was seen, and what contradicts itself.
func (c *contents) all() (map[string]robustness.Content, []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.byVersion), c.conflicts
}

// seenSource looks at what a source gives. A deletion has the last content under a version of its
// own.
type seenSource struct {
	listwatch.ListerWatcher[object]
	contents *contents
}

func (s seenSource) List(ctx context.Context, options metav1.ListOptions) listwatch.List[object] {
	list := s.ListerWatcher.List(ctx, options)
	items := list.Items
	list.Items = func(yield func(object, error) bool) {
		for obj, err := range items {
			s.contents.see(obj)
			if !yield(obj, err) {
				return
			}
		}
	}
	return list
}

func (s seenSource) Watch(ctx context.Context, options metav1.ListOptions) iter.Seq2[listwatch.Event[object], error] {
	events := s.ListerWatcher.Watch(ctx, options)
	return func(yield func(listwatch.Event[object], error) bool) {
		for event, err := range events {
			s.contents.see(event.Object)
			if !yield(event, err) {
				return
			}
		}
	}
}

// seenStore looks at what a store is told.
type seenStore struct {
	*store.Indexer[object]
	contents *contents
}

func (s seenStore) Add(obj object) error    { s.contents.see(obj); return s.Indexer.Add(obj) }
func (s seenStore) Update(obj object) error { s.contents.see(obj); return s.Indexer.Update(obj) }

func (s seenStore) Replace(items iter.Seq2[object, error], resourceVersion func() string) error {
	return s.Indexer.Replace(func(yield func(object, error) bool) {
		for obj, err := range items {
			s.contents.see(obj)
			if !yield(obj, err) {
				return
			}
		}
	}, resourceVersion)
}
