package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/harness"
	factories "github.com/tributary-go/tributary/informer/clientgo/informers"
	"github.com/tributary-go/tributary/listwatch"
)

// slimming is what a program keeps of its pods.
type slimming string

const (
	stripped      slimming = "without managed fields, by a transform"
	strippedByUs  slimming = "without managed fields, ours by DropManagedFields"
	slimmed       slimming = "name, labels, node and phase, by a transform"
	slimmingParts          = "informers of pods of which a program keeps a part"
)

// transform is that of the program.
func (s slimming) transform(obj any) (any, error) {
	pod := obj.(*corev1.Pod)
	if s != slimmed {
		pod.ManagedFields = nil
		return pod, nil
	}
	meta := metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels}
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName}, Status: corev1.PodStatus{Phase: pod.Status.Phase}}, nil
}

// slim is the informer of a factory, in one namespace.
func (m measurement) slim(ctx context.Context, config *rest.Config) copies {
	client := harness.Must(kubernetes.NewForConfig(config))
	options := []factories.SharedInformerOption{factories.WithNamespace("0"), factories.WithTransform(m.Slim.transform)}
	if m.Slim == strippedByUs {
		options[1] = factories.WithListWatch(listwatch.DropManagedFields())
	}
	factory := factories.NewSharedInformerFactoryWithOptions(client, 0, options...)
	if m.Library == clientGo {
		factory = informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("0"), informers.WithTransform(m.Slim.transform))
	}
	it := factory.Core().V1().Pods().Informer()
	factory.Start(ctx.Done())
	return copies{held: []any{it}, wait: func() { clientcache.WaitForCacheSync(ctx.Done(), it.HasSynced) }}
}

// measureSlim measures factories of one informer.
func (s sizes) measureSlim(ctx context.Context, h harness.Settings, url string) {
	table.Begin(slimmingParts)
	for _, each := range []int{min(500, s.most), min(6000, s.most)} {
		for _, slim := range []slimming{stripped, strippedByUs, slimmed} {
			m := measurement{URL: url, Kind: kinds[1].Name, Informers: 1, Each: each, Slim: slim}
			m.row(ctx, h, fmt.Sprintf("%d, %s", each, slim))
		}
	}
}
