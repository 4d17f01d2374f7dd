package controllerruntime_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tributary-go/tributary/controllerruntime"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
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

// TestOwnWritesWaitForTheirNamespaceAlone: a form of the kind that begins later must show the
// writes that the others have shown, in the namespace that is read. Another one may be behind.
func TestOwnWritesWaitForTheirNamespaceAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		defer pods.NoWatchList(listwatchtest.UntilLifted()).Lift()
		c := newCache(t, pods, cache.Options{DefaultNamespaces: map[string]cache.Config{"ns": {}, "away": {}}})
		own, err := controllerruntime.NewClient(pods.Server().Config(), client.Options{
			Mapper: mapper(), Cache: &client.CacheOptions{Reader: c},
		})
		require.NoError(t, err)
		start(t, c)
		for _, key := range []client.ObjectKey{keyOf("ns", "p"), keyOf("away", "q")} {
			require.NoError(t, own.Create(t.Context(), valid(key.Namespace, key.Name)))
			require.NoError(t, own.Get(t.Context(), key, &corev1.Pod{}))
		}
		require.Zero(t, controllerruntime.Pending(own), "both are shown")

		// The metadata of the other namespace are of before the writes, and stay so.
		behind := pods.Intercept(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			switch {
			case !strings.Contains(r.URL.Path, "/namespaces/away/") || !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata"):
				server.ServeHTTP(w, r)
			case r.URL.Query().Get("watch") != "":
				<-r.Context().Done()
			default:
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"}}`)
			}
		}, listwatchtest.UntilLifted())
		defer behind.Lift()
		metadata := func() *metav1.PartialObjectMetadata {
			obj := &metav1.PartialObjectMetadata{}
			obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
			return obj
		}
		require.NoError(t, own.Get(soon(t), keyOf("ns", "p"), metadata()))
		require.ErrorIs(t, own.Get(soon(t), keyOf("away", "q"), metadata()), context.DeadlineExceeded)
	})
}
