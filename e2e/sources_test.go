package e2e_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
)

// followPods follows pods as typed objects: of one node, or all when that is empty.
func (w *world) followPods(t testing.TB, config *rest.Config, node string, read []listwatch.Option, options ...reflector.Option) follower {
	t.Helper()
	return w.followPodsTapped(t, &wire{}, config, node, read, options...)
}

// followPodsTapped is followPods with a wire that the test has prepared.
func (w *world) followPodsTapped(t testing.TB, tap *wire, config *rest.Config, node string, read []listwatch.Option, options ...reflector.Option) follower {
	t.Helper()
	client, err := kubernetes.NewForConfig(tap.on(config))
	require.NoError(t, err)
	return follow(t, "pods of "+orAll(node), source[*corev1.Pod]{
		wire:  tap,
		reads: listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods", onNode(node, read)...),
		fresh: func(ctx context.Context) ([]*corev1.Pod, error) {
			list, err := w.client.CoreV1().Pods("").List(ctx, nodeOptions(node))
			if err != nil {
				return nil, err
			}
			return pointers(list.Items), nil
		},
	}, options)
}

// followMetadata follows pods as nothing but their metadata.
func (w *world) followMetadata(t testing.TB, config *rest.Config, node string, read []listwatch.Option, options ...reflector.Option) follower {
	t.Helper()
	tap := &wire{}
	client, err := listwatch.NewRESTClient(tap.on(config), corev1.SchemeGroupVersion)
	require.NoError(t, err)
	return follow(t, "metadata of pods of "+orAll(node), source[*metav1.PartialObjectMetadata]{
		wire:  tap,
		reads: listwatch.FromClient[metav1.PartialObjectMetadata](client, "pods", onNode(node, read)...),
		fresh: func(ctx context.Context) ([]*metav1.PartialObjectMetadata, error) {
			list, err := w.metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).List(ctx, nodeOptions(node))
			if err != nil {
				return nil, err
			}
			return pointers(list.Items), nil
		},
	}, options)
}

// followWidgets follows the custom resource as unstructured objects.
func (w *world) followWidgets(t testing.TB, config *rest.Config, node string, read []listwatch.Option, options ...reflector.Option) follower {
	t.Helper()
	tap := &wire{}
	client, err := listwatch.NewRESTClient(tap.on(config), widgetVersion)
	require.NoError(t, err)
	return follow(t, "widgets of "+orAll(node), source[*unstructured.Unstructured]{
		wire:  tap,
		reads: listwatch.FromClient[unstructured.Unstructured](client, "widgets", onNode(node, read)...),
		fresh: func(ctx context.Context) ([]*unstructured.Unstructured, error) {
			list, err := w.dynamics.Resource(widgetResource).List(ctx, nodeOptions(node))
			if err != nil {
				return nil, err
			}
			return pointers(list.Items), nil
		},
	}, options)
}

// followMissing follows a resource that there is not.
func (w *world) followMissing(t testing.TB, config *rest.Config, options ...reflector.Option) follower {
	t.Helper()
	tap := &wire{}
	client, err := listwatch.NewRESTClient(tap.on(config), corev1.SchemeGroupVersion)
	require.NoError(t, err)
	return follow(t, "nothing", source[*unstructured.Unstructured]{
		wire: tap, reads: listwatch.FromClient[unstructured.Unstructured](client, "unicorns"),
	}, options)
}

const nodeField = "spec.nodeName"

func onNode(node string, read []listwatch.Option) []listwatch.Option {
	if node == "" {
		return read
	}
	return append([]listwatch.Option{listwatch.Fields(fields.OneTermEqualSelector(nodeField, node))}, read...)
}

func nodeOptions(node string) metav1.ListOptions {
	if node == "" {
		return metav1.ListOptions{}
	}
	return metav1.ListOptions{FieldSelector: nodeField + "=" + node}
}

func orAll(node string) string {
	if node == "" {
		return "all nodes"
	}
	return node
}

func pointers[O any](items []O) []*O {
	to := make([]*O, len(items))
	for i := range items {
		to[i] = &items[i]
	}
	return to
}
