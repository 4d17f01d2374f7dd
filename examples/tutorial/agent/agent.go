// Package agent is the program of docs/tutorial.md from its third step on: it counts the pods of a
// node by their app, and marks each pod that it has seen.
package agent

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

const mark = "example.com/seen"

// Agent marks the pods of a node. Run its Pods.
type Agent struct {
	Pods  *informer.Informer[*corev1.Pod]
	byApp *store.Index[*corev1.Pod, string]
	core  corev1client.CoreV1Interface
	out   io.Writer
}

// New makes an agent that tells out of each event.
func New(ctx context.Context, config *rest.Config, node string, out io.Writer) (*Agent, error) {
	core, err := corev1client.NewForConfig(config) // for writes
	if err != nil {
		return nil, err
	}
	client, err := listwatch.NewRESTClient(config, corev1.SchemeGroupVersion) // for the copy
	if err != nil {
		return nil, err
	}
	a := &Agent{core: core, out: out, byApp: store.NewIndex("app", appsOf)}
	ofNode := fields.OneTermEqualSelector("spec.nodeName", node)
	a.Pods = informer.New(listwatch.FromClient[corev1.Pod](client, "pods", listwatch.Fields(ofNode)),
		informer.WithIndexes(a.byApp))
	_, err = a.Pods.AddHandler(func(e informer.Event[*corev1.Pod]) { a.handle(ctx, e) })
	return a, err
}

func appsOf(pod *corev1.Pod) []string { return []string{pod.Labels["app"]} }

func (a *Agent) handle(ctx context.Context, e informer.Event[*corev1.Pod]) {
	now := a.Pods.Snapshot()
	for _, app := range appsOf(e.Object()) {
		fmt.Fprintln(a.out, e.Type, e.Key, "and now", app, "has", a.byApp.Len(now, app))
	}
	if e.Type == informer.Added {
		if err := a.mark(ctx, e.New); err != nil {
			fmt.Fprintln(a.out, "not marked:", err)
		}
	}
}

// mark writes the mark into a pod that has none, and returns once the copy has it.
func (a *Agent) mark(ctx context.Context, pod *corev1.Pod) error {
	if pod.Annotations[mark] != "" {
		return nil
	}
	patch := []byte(`{"metadata": {"annotations": {"` + mark + `": "yes"}}}`)
	written, err := a.core.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	if err := a.Pods.WaitFor(ctx, written); err != nil { // read your own write
		return err
	}
	if now, held := a.Pods.Get(store.KeyOf(pod)); held {
		fmt.Fprintln(a.out, "marked", store.KeyOf(pod)+", and the copy says", now.Annotations[mark])
	}
	return nil
}
