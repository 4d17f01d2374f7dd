package reflector_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// TestFakeClientsets: a test author gives the functions of client-go's fake and no option. The fake
// takes the request for a watch list and says nothing, or tells of what is written meanwhile.
func TestFakeClientsets(t *testing.T) {
	podOf := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	}
	for name, clientset := range map[string]func() kubernetes.Interface{
		"NewClientset": func() kubernetes.Interface { return fake.NewClientset(podOf("early")) },
		//lint:ignore SA1019 deprecated, and in many tests
		"NewSimpleClientset": func() kubernetes.Interface { return fake.NewSimpleClientset(podOf("early")) },
	} {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s busy=%t", name, busy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					pods := clientset().CoreV1().Pods("ns")
					create := func(name string) {
						_, err := pods.Create(t.Context(), podOf(name), metav1.CreateOptions{})
						require.NoError(t, err)
					}
					copied := store.NewIndexer[*corev1.Pod]()
					r := reflector.New(listwatch.FromFuncs[*corev1.Pod](pods.List, pods.Watch), copied)
					ctx, cancel := context.WithCancel(t.Context())
					ended := make(chan error)
					go func() { ended <- r.Run(ctx) }()
					want := 1
					for range 9 {
						// Older fakes lose a write between a LIST and a WATCH.
						time.Sleep(99 * time.Millisecond)
						if busy {
							create(fmt.Sprint("meanwhile-", want))
							want++
						}
					}
					synctest.Wait()
					require.True(t, r.Status().Synced, "within a second: %v", r.Status())
					create("late")
					synctest.Wait()
					require.Equal(t, want+1, copied.Snapshot().Len())
					_, ok := copied.Snapshot().Get("ns/late")
					require.True(t, ok)
					cancel()
					require.NoError(t, <-ended)
				})
			})
		}
	}
}
