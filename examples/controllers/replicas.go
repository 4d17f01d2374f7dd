package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/enqueue"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// countPods annotates each ReplicaSet with the number of its pods.
func countPods(ctx context.Context, client kubernetes.Interface) error {
	owner := enqueue.Owner[*corev1.Pod](appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	byOwner := store.NewIndex("owner", owner)
	pods := informer.New(listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods"), informer.WithIndexes(byOwner))
	sets := informer.New(listwatch.FromClient[appsv1.ReplicaSet](client.AppsV1().RESTClient(), "replicasets"))
	c := controller.Controller[string]{
		Reconcile: func(ctx context.Context, key string) error {
			set, ok := sets.Get(key)
			count := fmt.Sprint(byOwner.Len(pods.Snapshot(), key))
			if !ok || set.Annotations["example.com/pods"] == count {
				return nil
			}
			patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{"example.com/pods":%q}}}`, set.UID, count)
			written, err := client.AppsV1().ReplicaSets(set.Namespace).Patch(ctx, set.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				return err
			}
			return sets.WaitFor(ctx, written)
		},
		Feeds:   []controller.Feed[string]{controller.For(sets), controller.From(pods, owner)},
		Copies:  []controller.Runner{sets, pods},
		Workers: 2,
	}
	return c.Run(ctx)
}
