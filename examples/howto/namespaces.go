package howto

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
)

// Namespaces is one collection of the pods of some namespaces.
func Namespaces(client rest.Interface, names ...string) (*informer.Union[*corev1.Pod], error) {
	pods := informer.NewUnion[*corev1.Pod]()
	for _, name := range names {
		source := listwatch.FromClient[corev1.Pod](client, "pods", listwatch.InNamespace(name))
		if _, err := pods.Add(name, source); err != nil {
			return nil, err
		}
	}
	return pods, nil
}

// Part is one replica's part of the pods, which all replicas together have once.
func Part(client rest.Interface, replica, replicas int) *informer.Informer[*corev1.Pod] {
	return informer.New(listwatch.FromClient[corev1.Pod](client, "pods", listwatch.Shard(replica, replicas)))
}

// Cluster tells of the pods of one cluster, until ctx ends. Call it for each cluster.
func Cluster(ctx context.Context, name string, config *rest.Config, tell func(key string)) error {
	set := informer.NewSet(config)
	pods, err := informer.Acquire[corev1.Pod](set, corev1.SchemeGroupVersion.WithResource("pods"))
	if err != nil {
		return err
	}
	_, err = pods.AddHandler(func(e informer.Event[*corev1.Pod]) { tell(name + "/" + e.Key) })
	if err != nil {
		return err
	}
	return set.Run(ctx)
}
