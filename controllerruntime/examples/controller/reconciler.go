package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// label has the number of pods that run on a node or are to run there.
	label = "tributary.example/pods"
	// byNode is the index of the pods that count, by their node.
	byNode = "node"
)

// nodesOf returns the node of a pod that counts: one that is bound and has not ended.
func nodesOf(obj client.Object) []string {
	p := obj.(*corev1.Pod)
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return nil
	}
	return []string{p.Spec.NodeName}
}

// reconciler keeps the label of each node equal to the number of its pods.
type reconciler struct {
	client client.Client
	stdout io.Writer // a line for each label that was written
}

func (r *reconciler) setup(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, byNode, nodesOf); err != nil {
		return err
	}
	// A pod that moves, or ends, concerns the node that it was on: the handler maps both states.
	nodeOf := func(_ context.Context, obj client.Object) (requests []reconcile.Request) {
		for _, node := range nodesOf(obj) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: node}})
		}
		return requests
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&corev1.Node{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(nodeOf)).
		Complete(r)
}

// Reconcile corrects the label of one node. It decides by the content of the cache, whatever the
// event was.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var node corev1.Node
	if err := r.client.Get(ctx, request.NamespacedName, &node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // its label has gone with it
	}
	var pods corev1.PodList
	onNode := client.MatchingFields{byNode: node.Name}
	if err := r.client.List(ctx, &pods, onNode, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, err
	}
	count := strconv.Itoa(len(pods.Items))
	if node.Labels[label] == count {
		return reconcile.Result{}, nil
	}
	before := node.DeepCopy()
	metav1.SetMetaDataLabel(&node.ObjectMeta, label, count)
	if err := r.client.Patch(ctx, &node, client.MergeFrom(before)); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	fmt.Fprintf(r.stdout, "%s pods=%s\n", node.Name, count)
	return reconcile.Result{}, nil
}
