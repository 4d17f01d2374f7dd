package clientgo_test

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo"
)

// TestAHandlerBeginsWhenItIsAdded: if an addition and a change come before a handler's goroutine
// runs, the handler is told both.
func TestAHandlerBeginsWhenItIsAdded(t *testing.T) {
	// The informer goes on before the handler's goroutine begins.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, newInformer := range map[string]func(cache.ListerWatcher) cache.SharedIndexInformer{
		"client-go": func(lw cache.ListerWatcher) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, nil)
		},
		"tributary": func(lw cache.ListerWatcher) cache.SharedIndexInformer {
			return clientgo.NewInformer(lw, &corev1.Pod{}, 0, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				events := watch.NewFakeWithChanSize(8, false)
				at := func(name, version string) *corev1.Pod {
					return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u", ResourceVersion: version}}
				}
				come := func(name, version, next string) {
					events.Add(at(name, version))
					events.Modify(at(name, next))
				}
				shared := newInformer(withoutWatchList{&cache.ListWatch{
					ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
						return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
					},
					WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return events, nil },
				}})
				first, late := &transcript{}, &transcript{}
				_, err := shared.AddEventHandler(first)
				require.NoError(t, err)
				come("a", "2", "3")
				running(t, shared.RunWithContext)
				synctest.Wait()
				require.Equal(t, []string{"add a@2 initial=false", "update a@2 to a@3"}, first.take())

				_, err = shared.AddEventHandler(late)
				require.NoError(t, err)
				come("b", "4", "5")
				synctest.Wait()
				require.Equal(t, []string{"add a@3 initial=true", "add b@4 initial=false", "update b@4 to b@5"}, late.take())
				require.Equal(t, []string{"add b@4 initial=false", "update b@4 to b@5"}, first.take())
			})
		})
	}
}

// withoutWatchList has no answer to a watch list, as client-go's fakes.
type withoutWatchList struct{ *cache.ListWatch }

func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }
