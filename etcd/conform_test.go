package etcd_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

func podFields(p *corev1.Pod) fields.Set {
	return fields.Set{"spec.nodeName": p.Spec.NodeName, "status.phase": string(p.Status.Phase)}
}

// TestConformance: what a reflector, and any other client, relies on is the same here as from an
// API server: the suite that the fake and the real server pass.
func TestConformance(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	var rows atomic.Int64
	listwatchtest.Conform(t, func(t *testing.T) listwatchtest.Rig {
		prefix := etcd.Prefix(fmt.Sprintf("/registry/pods-%d/", rows.Add(1)))
		w := podWriter{client, string(prefix)}
		var all []*etcd.Source[*corev1.Pod]
		return listwatchtest.Rig{
			Source: func(options ...listwatch.Option) listwatch.ListerWatcher[*corev1.Pod] {
				namespace := listwatch.ScopeOf(options...).Namespace()
				source := etcd.New[corev1.Pod](client, prefix, etcd.InNamespace(namespace),
					etcd.WithFields(podFields), etcd.WithProgressEvery(time.Hour))
				all = append(all, source)
				return source
			},
			Namespace: "ns",
			Create:    w.create, Update: w.update, UpdateStatus: w.update, Delete: w.delete,
			Expire: func() { compact(t, client, put(t, client, pod("elsewhere"))) },
			Bookmark: func() {
				for _, source := range all {
					_, _, _ = source.Progress(t.Context(), "")
				}
			},
		}
	})
}

// podWriter writes pods by as many of the API server's rules as the suite asks for.
type podWriter struct {
	client *clientv3.Client
	prefix string
}

func (w podWriter) key(p *corev1.Pod) string { return w.prefix + p.Namespace + "/" + p.Name }

func (w podWriter) write(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	value, err := inProtobuf("v1", "Pod", p)
	if err != nil {
		return nil, err
	}
	answer, err := w.client.Put(ctx, w.key(p), string(value))
	if err != nil {
		return nil, err
	}
	p.ResourceVersion = at(answer.Header.Revision)
	return p, nil
}

func (w podWriter) stored(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	source := etcd.New[corev1.Pod](w.client, etcd.Prefix(w.prefix), etcd.InNamespace(p.Namespace))
	for obj, err := range source.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + p.Name}).Items {
		return obj, err
	}
	return nil, fmt.Errorf("no pod %s", p.Name)
}

func (w podWriter) create(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	p = p.DeepCopy()
	p.UID, p.CreationTimestamp = uuid.NewUUID(), metav1.NewTime(time.Now().Truncate(time.Second))
	return w.write(ctx, p)
}

func (w podWriter) update(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	stored, err := w.stored(ctx, p)
	if err != nil || apiequality.Semantic.DeepEqual(stored, p) {
		return stored, err
	}
	if p.DeletionTimestamp != nil && len(p.Finalizers) == 0 {
		return p, w.delete(ctx, p.Name)
	}
	return w.write(ctx, p.DeepCopy())
}

func (w podWriter) delete(ctx context.Context, name string) error {
	stored, err := w.stored(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}})
	if err != nil {
		return err
	}
	if len(stored.Finalizers) > 0 && stored.DeletionTimestamp == nil {
		stored = stored.DeepCopy()
		now := metav1.NewTime(time.Now().Truncate(time.Second))
		stored.DeletionTimestamp = &now
		_, err = w.write(ctx, stored)
		return err
	}
	_, err = w.client.Delete(ctx, w.key(stored))
	return err
}
