package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/controller/finalizer"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

var buckets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "buckets"}

// storage is a service outside the cluster.
type storage interface {
	Create(ctx context.Context, name string) (ready bool, err error)
	Delete(ctx context.Context, name string) error
}

// keepBuckets makes a bucket for each custom resource, of which it reads the metadata alone.
func keepBuckets(ctx context.Context, config *rest.Config, outside storage, checkpoint string) error {
	client, err := listwatch.NewRESTClient(config, buckets.GroupVersion())
	if err != nil {
		return err
	}
	copied := informer.New(listwatch.FromClient[metav1.PartialObjectMetadata](client, buckets.Resource))
	c := controller.Controller[string]{
		Reconcile: func(ctx context.Context, key string) error {
			bucket, ok := copied.Get(key)
			if !ok {
				return nil
			}
			patch := finalizer.Patch[metav1.PartialObjectMetadata](client, buckets.Resource, bucket.Namespace)
			live, err := finalizer.Keep(ctx, bucket, "example.com/storage", patch, func(ctx context.Context, gone *metav1.PartialObjectMetadata) error {
				return outside.Delete(ctx, store.KeyOf(gone))
			})
			if !live {
				return err
			}
			if ready, err := outside.Create(ctx, key); ready || err != nil {
				return err
			}
			return controller.After(10 * time.Second)
		},
		Feeds:      []controller.Feed[string]{controller.For(copied)},
		Copies:     []controller.Runner{copied},
		Name:       "buckets",
		Checkpoint: checkpoint,
	}
	return c.Run(ctx)
}
