//go:build !controllerruntime024

package controllerruntime_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestExempt: no read waits for a write that the caller exempts, and no exempt read waits.
func TestExempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := own(t, "", cache.Options{}, client.CacheOptions{})
		r.run()
		r.gate.shut()
		defer r.gate.unlock()
		require.NoError(t, r.Create(t.Context(), valid("ns", "p"), client.DisableReadYourWritesConsistency))
		require.NoError(t, r.List(soon(t), &corev1.PodList{}))
		require.NoError(t, r.Create(t.Context(), valid("ns", "q")))
		require.NoError(t, r.List(soon(t), &corev1.PodList{}, client.DisableReadYourWritesConsistency))
		require.Error(t, r.List(soon(t), &corev1.PodList{}))
	})
}

// TestOneOfTwo: controller-runtime's own waiting and ours exclude each other.
func TestOneOfTwo(t *testing.T) {
	pods := listwatchtest.New(t, listwatchtest.Pods())
	_, err := controllerruntime.NewClient(pods.Server().Config(), client.Options{Mapper: mapper(), Cache: &client.CacheOptions{
		Reader: newCache(t, pods, cache.Options{}), EnableReadYourWritesConsistency: ptr.To(true),
	}})
	require.ErrorContains(t, err, "remove one of the two")
}
