package informer_test

import (
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

// TestNothingOfADeletedSecretStays: a ring that is not full keeps no deleted object, and no old
// state of a changed one.
func TestNothingOfADeletedSecretStays(t *testing.T) {
	secrets := listwatchtest.New(t, listwatchtest.Of[*corev1.Secret]())
	for name, handlers := range map[string]int{"no handler": 0, "one handler": 1, "three handlers": 3} {
		t.Run(name, func(t *testing.T) {
			i := informer.New(secrets.ListerWatcher())
			var mu sync.Mutex
			told := make([]int, handlers)
			var added []*informer.Handler[*corev1.Secret]
			for h := range handlers {
				handler, err := i.AddHandler(func(e informer.Event[*corev1.Secret]) {
					mu.Lock()
					defer mu.Unlock()
					told[h]++
				})
				require.NoError(t, err)
				added = append(added, handler)
			}
			go i.Run(t.Context())
			require.NoError(t, i.WaitSynced(t.Context()))
			for _, h := range added { // a handler is told of no change before its first state
				require.NoError(t, h.WaitSynced(t.Context()))
			}

			var values []weak.Pointer[corev1.Secret]
			note := func(version metav1.Object) {
				require.NoError(t, i.WaitForResourceVersion(t.Context(), version.GetResourceVersion()))
				if held, ok := i.Snapshot().Get("ns/a"); ok {
					values = append(values, weak.Make(held))
				}
			}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string][]byte{"k": []byte("v")}}
			created := secrets.Create(secret)
			note(created)
			changed := created.DeepCopy()
			changed.Data["k"] = []byte("w")
			note(secrets.Update(changed))
			note(secrets.Remove(created))
			require.Len(t, values, 2)
			// Neither the handlers nor the garbage collector signal that they are done.
			require.Eventually(t, func() bool {
				runtime.GC()
				for _, v := range values {
					if v.Value() != nil {
						return false
					}
				}
				return true
			}, 20*time.Second, time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			for _, n := range told {
				require.Equal(t, 3, n)
			}
		})
	}
}
