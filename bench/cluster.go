package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
)

// measureCluster prints the tables of a first sync of all pods of a real cluster.
func measureCluster(ctx context.Context, s settings) {
	if s.fill {
		harness.Within("fill the cluster", func() { s.fillCluster(ctx) })
	}
	readers := []reader{{interned, "watchlist"}, {interned, "list"}, {clientGoReflector, "watchlist"}, {clientGoReflector, "list"}, {clientGoInformer, "list"}}
	for _, form := range []world.Form{world.Protobuf, world.JSON} {
		c := scenario{name: "first sync of a cluster's pods, protobuf", reading: s.reading("sync", form), readers: readers}
		if c.Kubeconfig = s.kubeconfig; form == world.JSON {
			c.name = "first sync of a cluster's pods, JSON"
		}
		medians := harness.ByTurns(s.Repeat, readers, func(r reader) harness.Figures { return c.by(ctx, r) })
		if c.Objects = int(medians[0]["objects"]); c.Objects == 0 {
			harness.Fail("the cluster has no pods")
		}
		c.print(s, medians)
	}
}

// fillCluster creates pods, each with its status and the managedFields of three writers.
func (s settings) fillCluster(ctx context.Context) {
	client := harness.Must(kubernetes.NewForConfig(clientConfig(s.kubeconfig))).CoreV1()
	podOf := func(i int) *corev1.Pod { return world.Pods{PerSet: s.PerSet}.Pod(i, i, 0) }
	made := map[string]bool{}
	for i := range s.Pods {
		name := podOf(i).Namespace
		if made[name] {
			continue
		}
		made[name] = true
		_, err := client.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			harness.Check(err)
		}
	}
	harness.AtOnce(s.Pods, 32, func(i int) {
		pod := podOf(i)
		pod.ResourceVersion, pod.UID = "", ""
		created := harness.Must(client.Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}))
		created.Status = pod.Status
		harness.Must(client.Pods(pod.Namespace).UpdateStatus(ctx, created, metav1.UpdateOptions{}))
	})
}

// clientConfig is that of a real cluster, with no limit to the rate of requests.
func clientConfig(kubeconfig string) *rest.Config {
	config := harness.Must(clientcmd.BuildConfigFromFlags("", kubeconfig))
	config.QPS, config.Timeout, config.WarningHandler = -1, 10*time.Minute, rest.NoWarnings{}
	return config
}
