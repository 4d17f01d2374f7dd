package main

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// start runs a controller until the test ends.
func start(t *testing.T, run func(context.Context) error) {
	klog.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestCountPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		sets := listwatchtest.Serve(pods.Server(), listwatchtest.Of[*appsv1.ReplicaSet]())
		client, err := kubernetes.NewForConfig(pods.Server().Config())
		require.NoError(t, err)
		set := sets.Create(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}})
		create := func(name string) *corev1.Pod {
			owner := *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
			return pods.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: []metav1.OwnerReference{owner}}})
		}
		counted := func() string {
			synctest.Wait() // nothing is left to be done
			now, err := sets.Origin().Get("ns", "web")
			require.NoError(t, err)
			return now.Annotations["example.com/pods"]
		}
		first := create("web-0")
		start(t, func(ctx context.Context) error { return countPods(ctx, client) })
		require.Equal(t, "1", counted())
		create("web-1")
		create("web-2")
		require.Equal(t, "3", counted())
		pods.Remove(first)
		require.Equal(t, "2", counted())
	})
}

// shelf is a storage whose buckets take a while.
type shelf struct {
	mu     sync.Mutex
	ready  map[string]bool
	refuse bool
}

func (s *shelf) Create(_ context.Context, name string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, asked := s.ready[name]
	s.ready[name] = asked
	return asked, nil
}

func (s *shelf) Delete(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse {
		return errors.New("the bucket is not empty")
	}
	delete(s.ready, name)
	return nil
}

func TestKeepBuckets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := listwatchtest.New(t, listwatchtest.Custom[*unstructured.Unstructured](buckets.GroupVersion().WithKind("Bucket"), buckets.Resource))
		bucket := made.Create(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Bucket",
			"metadata": map[string]any{"namespace": "ns", "name": "photos", "finalizers": []any{"example.com/other"}},
		}})
		outside := &shelf{ready: map[string]bool{}}
		shown := func(after time.Duration) map[string]bool {
			time.Sleep(after) // of the bubble's
			synctest.Wait()
			outside.mu.Lock()
			defer outside.mu.Unlock()
			return maps.Clone(outside.ready)
		}
		start(t, func(ctx context.Context) error {
			return keepBuckets(ctx, made.Server().Config(), outside, filepath.Join(t.TempDir(), "checkpoint"))
		})
		require.Equal(t, map[string]bool{"ns/photos": false}, shown(time.Second))
		require.Equal(t, map[string]bool{"ns/photos": true}, shown(time.Minute))
		now, err := made.Origin().Get("ns", "photos")
		require.NoError(t, err)
		require.Equal(t, []string{"example.com/other", "example.com/storage"}, now.GetFinalizers())

		outside.refuse = true
		made.Delete(bucket)
		require.Len(t, shown(time.Minute), 1)
		outside.mu.Lock()
		outside.refuse = false
		outside.mu.Unlock()
		require.Empty(t, shown(10*time.Minute))
		now, err = made.Origin().Get("ns", "photos")
		require.NoError(t, err)
		require.Equal(t, []string{"example.com/other"}, now.GetFinalizers(), "another program's stays")
	})
}
