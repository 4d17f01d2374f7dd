package controllerruntime_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/controllerruntime"
)

// TestLeanOwnWrites: a client of NewClient reads its own writes to objects of a lean kind.
func TestLeanOwnWrites(t *testing.T) {
	for _, withMetadata := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newLeanRig(t, cache.Options{})
			if withMetadata {
				_, err := r.GetInformer(t.Context(), metadataOfSecrets())
				require.NoError(t, err)
			}
			own, err := controllerruntime.NewClient(r.secrets.Server().Config(), client.Options{
				Mapper: r.mapper, Cache: &client.CacheOptions{Reader: r.Cache},
			})
			require.NoError(t, err)
			start(t, r)
			waits := func() {
				t.Helper()
				synctest.Wait() // whatever the networks let through has come
				require.ErrorIs(t, own.Get(soon(t), keyOf("ns", "tls"), &corev1.Secret{}), context.DeadlineExceeded)
				time.AfterFunc(time.Second, func() { r.named.unlock(); r.unnamed.unlock() })
			}
			shut := func() { r.named.shut(); r.unnamed.shut() }
			var obj corev1.Secret
			require.True(t, apierrors.IsNotFound(own.Get(t.Context(), keyOf("ns", "tls"), &obj)))
			shut()
			require.NoError(t, own.Create(t.Context(), secret("tls", "1")))
			waits()
			require.NoError(t, own.Get(t.Context(), keyOf("ns", "tls"), &obj))
			shut()
			obj.Data["value"] = []byte("2")
			require.NoError(t, own.Update(t.Context(), &obj))
			waits()
			require.NoError(t, own.Get(t.Context(), keyOf("ns", "tls"), &obj))
			require.Equal(t, "2", string(obj.Data["value"]))
			shut()
			require.NoError(t, own.Delete(t.Context(), &obj))
			waits()
			require.True(t, apierrors.IsNotFound(own.Get(t.Context(), keyOf("ns", "tls"), &obj)))
			require.ErrorIs(t, own.List(t.Context(), &corev1.SecretList{}), controllerruntime.ErrLean)
			require.Zero(t, controllerruntime.Pending(own))
		})
	}
}

// TestLeanManyWrites: an object whose write is not kept one by one is read again.
func TestLeanManyWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLeanRig(t, cache.Options{})
		own, err := controllerruntime.NewClient(r.secrets.Server().Config(), client.Options{
			Mapper: r.mapper, Cache: &client.CacheOptions{Reader: r.Cache},
		})
		require.NoError(t, err)
		start(t, r)
		const count = controllerruntime.MaxPending * 3 / 2
		name := func(i int) string { return fmt.Sprint("s", i) }
		for i := range count {
			require.Equal(t, "none", r.value(name(i)))
		}
		r.named.shut()
		for i := range count {
			require.NoError(t, own.Create(t.Context(), secret(name(i), "1")))
			require.LessOrEqual(t, controllerruntime.Pending(own), controllerruntime.MaxPending)
		}
		time.AfterFunc(time.Second, r.named.unlock)
		for i := range count {
			require.NoError(t, own.Get(t.Context(), keyOf("ns", name(i)), &corev1.Secret{}))
		}
	})
}
