package clientgo_test

import (
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/informer/clientgo"
)

// BenchmarkWrittenByHand is an event of a pod among 10,000, whose handler writes the pod into the
// informer's own store, as some provisioners do with a state that they have just written.
func BenchmarkWrittenByHand(b *testing.B) {
	const pods, inFlight = 10_000, 64
	for name, newInformer := range map[string]func(cache.ListerWatcher) cache.SharedIndexInformer{
		"tributary": func(lw cache.ListerWatcher) cache.SharedIndexInformer {
			return clientgo.NewInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
		},
		"client-go": func(lw cache.ListerWatcher) cache.SharedIndexInformer {
			return cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
		},
	} {
		for _, byHand := range []bool{false, true} {
			b.Run(fmt.Sprintf("byHand=%t/%s", byHand, name), func(b *testing.B) {
				events := watch.NewFakeWithChanSize(inFlight, false)
				version := pods
				at := func(i, version int) *corev1.Pod {
					p := podOfSize.DeepCopy()
					p.Namespace, p.Name, p.UID, p.ResourceVersion = "ns", "p"+strconv.Itoa(i), types.UID(strconv.Itoa(i)), strconv.Itoa(version)
					return p
				}
				shared := newInformer(&cache.ListWatch{
					ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
						list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}}
						for i := range pods {
							list.Items = append(list.Items, *at(i, i+1))
						}
						return list, nil
					},
					WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
						if o.SendInitialEvents != nil {
							return nil, fmt.Errorf("no watch list")
						}
						return events, nil
					},
				})
				told := make(chan struct{}, inFlight)
				handler, err := shared.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, now any) {
					if byHand {
						if err := shared.GetStore().Update(now.(*corev1.Pod).DeepCopy()); err != nil {
							b.Error(err)
						}
					}
					told <- struct{}{}
				}})
				if err != nil {
					b.Fatal(err)
				}
				running(b, shared.RunWithContext)
				synced(b, handler)
				b.ReportAllocs()
				for b.Loop() {
					version++
					events.Modify(at(version*7919%pods, version))
					<-told
				}
			})
		}
	}
}

// podOfSize has the maps and lists of a usual pod.
var podOfSize = func() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}}}
	for i := range 8 {
		key := "example.com/key-" + strconv.Itoa(i)
		p.Labels[key], p.Annotations[key] = "value-"+key, "value-"+key
	}
	for range 2 {
		c := corev1.Container{Name: "main", Image: "registry.example.com/team/app:v1"}
		for i := range 12 {
			c.Env = append(c.Env, corev1.EnvVar{Name: "NAME_" + strconv.Itoa(i), Value: "value"})
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "v" + strconv.Itoa(i), MountPath: "/v"})
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	for range 5 {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "Ready", Status: "True"})
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "k", Operator: "Exists"})
	}
	return p
}()
