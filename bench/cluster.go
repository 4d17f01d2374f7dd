package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
func measureCluster(ctx context.Context, s settings) error {
	if s.fill {
		if err := s.fillCluster(ctx); err != nil {
			return fmt.Errorf("fill the cluster: %w", err)
		}
	}
	readers := []reader{{"tributary", "watchlist"}, {"tributary", "list"}, {"reflector", "watchlist"}, {"reflector", "list"}, {"informer", "list"}}
	for _, c := range []scenario{
		{name: "first sync of a cluster's pods, protobuf", what: "sync", form: world.Protobuf, readers: readers},
		{name: "first sync of a cluster's pods, JSON", what: "sync", form: world.JSON, readers: readers},
	} {
		medians, err := harness.ByTurns(s.Repeat, readers, func(r reader) (harness.Figures, error) {
			return s.read(ctx, r, reading{Kubeconfig: s.kubeconfig, Form: c.form, What: c.what})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if c.objects = int(medians[0]["objects"]); c.objects == 0 {
			return errors.New("the cluster has no pods")
		}
		c.print(s, medians)
	}
	return nil
}

// fillCluster creates pods, each with the managedFields of three writers.
func (s settings) fillCluster(ctx context.Context) error {
	config, err := clientConfig(s.kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	made, failed := map[string]bool{}, make(chan error, 1)
	create := make(chan *corev1.Pod)
	var creating sync.WaitGroup
	defer creating.Wait()
	defer close(create)
	for range 32 {
		creating.Go(func() {
			for pod := range create {
				if err := createPod(ctx, client, pod); err != nil {
					select {
					case failed <- err:
					default:
					}
				}
			}
		})
	}
	for i := range s.Pods {
		pod := world.Pods{PerSet: s.PerSet}.Pod(i, i, 0)
		pod.ResourceVersion, pod.UID = "", ""
		if !made[pod.Namespace] {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pod.Namespace}}
			if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
			made[pod.Namespace] = true
		}
		select {
		case create <- pod:
		case err := <-failed:
			return err
		}
	}
	return nil
}

// createPod creates a pod with its status.
func createPod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	pods := client.CoreV1().Pods(pod.Namespace)
	created, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Status = pod.Status
	_, err = pods.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	return err
}

// clientConfig is that of a real cluster, with no limit to the rate of requests.
func clientConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Timeout, config.WarningHandler = -1, 10*time.Minute, rest.NoWarnings{}
	return config, nil
}
