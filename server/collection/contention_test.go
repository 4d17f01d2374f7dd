package collection_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
)

// TestPatchesWithoutAVersionNeverConflict: 16 writers make 20 patches each of one object. A patch
// that names no version is made on the newest state, exactly once.
func TestPatchesWithoutAVersionNeverConflict(t *testing.T) {
	const writers, rounds = 16, 20
	for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType, types.ApplyYAMLPatchType} {
		t.Run(string(kind), func(t *testing.T) {
			pods := newPods(t)
			_, err := pods.With(collection.WriteOptions{}).Create(pod("a"))
			require.NoError(t, err)
			var changes atomic.Int64
			pods.OnChange(func(listwatch.Event[*corev1.Pod]) { changes.Add(1) })
			errs := make(chan error, writers*rounds)
			var writing sync.WaitGroup
			for w := range writers {
				writing.Go(func() {
					client := pods.With(collection.WriteOptions{Manager: fmt.Sprint("writer-", w)})
					for round := range rounds {
						patch := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"annotations":{"writer-%d":"%d"}}}`, "a", w, round)
						if kind == types.ApplyYAMLPatchType {
							_, _, err := client.Apply("ns", "a", patch, false)
							errs <- err
							continue
						}
						_, err := client.Patch("ns", "a", kind, patch, "")
						errs <- err
					}
				})
			}
			writing.Wait()
			for range writers * rounds {
				require.NoError(t, <-errs)
			}
			require.EqualValues(t, writers*rounds, changes.Load())
			patched, err := pods.Get("ns", "a")
			require.NoError(t, err)
			require.Len(t, patched.Annotations, writers)
			for writer, last := range patched.Annotations {
				require.Equal(t, fmt.Sprint(rounds-1), last, writer)
			}
		})
	}
}

// replacing is a storage of one pod, which others delete and create again after each write.
type replacing struct{ stored *corev1.Pod }

func (s *replacing) Read(string) (*corev1.Pod, bool, error) { return s.stored, true, nil }

func (s *replacing) Write(_ string, decide func(*corev1.Pod, bool) (collection.Decision[*corev1.Pod], error)) (*corev1.Pod, error) {
	d, err := decide(s.stored, true)
	s.stored = s.stored.DeepCopy()
	s.stored.UID += "-next"
	return d.Object, err
}

// TestADeletionThatComesSecond: between the two writes of a pod's deletion another client deletes
// the pod and creates one of its name. The new one stays, and it is a conflict only for a client
// that has asked for the old one.
func TestADeletionThatComesSecond(t *testing.T) {
	cache, err := watchcache.NewCache(watchcache.Pods())
	require.NoError(t, err)
	t.Cleanup(cache.Close)
	asked := ptr.To(types.UID("first"))
	for _, preconditions := range []*metav1.Preconditions{nil, {}, {UID: asked}} {
		pods, err := collection.On(cache, builtin.Pods().Rules, &replacing{pod("a", func(p *corev1.Pod) { p.UID = *asked })})
		require.NoError(t, err)
		_, err = pods.Delete("ns", "a", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: preconditions})
		if preconditions != nil && preconditions.UID != nil {
			require.True(t, apierrors.IsConflict(err), "%v", err)
		} else {
			require.True(t, apierrors.IsNotFound(err), "%v", err)
		}
	}
}
