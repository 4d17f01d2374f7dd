package listwatchtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/server/watchcache"
)

func impatient(t *testing.T) *listwatchtest.Collection[*corev1.Pod] {
	t.Helper()
	return listwatchtest.New(t, listwatchtest.Pods(), watchcache.WithFreshWait(10*time.Millisecond))
}

// throughClient is a rig that reads and writes through one client, like a real server's rig.
func throughClient(t *testing.T, pods *listwatchtest.Collection[*corev1.Pod], config *rest.Config, options ...listwatch.Option) listwatchtest.Rig {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	inNamespace := client.CoreV1().Pods("conformance")
	return listwatchtest.Rig{
		Source: func(more ...listwatch.Option) listwatch.ListerWatcher[*corev1.Pod] {
			return listwatch.FromClient[corev1.Pod](client.CoreV1().RESTClient(), "pods", append(more, options...)...)
		},
		Namespace: "conformance",
		Create: func(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
			return inNamespace.Create(ctx, p, metav1.CreateOptions{})
		},
		Update: func(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
			return inNamespace.Update(ctx, p, metav1.UpdateOptions{})
		},
		UpdateStatus: func(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
			return inNamespace.UpdateStatus(ctx, p, metav1.UpdateOptions{})
		},
		Delete: func(ctx context.Context, name string) error {
			now := int64(0)
			return inNamespace.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		},
		Expire:   func() { pods.Expire() },
		Bookmark: pods.Bookmark,
	}
}

func TestConformanceInMemory(t *testing.T) {
	listwatchtest.Conform(t, func(t *testing.T) listwatchtest.Rig {
		pods := impatient(t)
		r := throughClient(t, pods, pods.Server().Config())
		r.Source = func(options ...listwatch.Option) listwatch.ListerWatcher[*corev1.Pod] {
			return pods.ListerWatcher(options...)
		}
		return r
	})
}

func TestConformanceOverHTTP(t *testing.T) {
	for name, options := range map[string][]listwatch.Option{"protobuf": nil, "JSON": {listwatch.WithJSON()}} {
		t.Run(name, func(t *testing.T) {
			listwatchtest.Conform(t, func(t *testing.T) listwatchtest.Rig {
				pods := impatient(t)
				return throughClient(t, pods, pods.Server().Listen(), options...)
			})
		})
	}
}

func TestConformanceThroughClientGo(t *testing.T) {
	listwatchtest.Conform(t, func(t *testing.T) listwatchtest.Rig {
		pods := impatient(t)
		r := throughClient(t, pods, pods.Server().Config())
		r.Source = func(options ...listwatch.Option) listwatch.ListerWatcher[*corev1.Pod] {
			return listwatch.FromClientGo[*corev1.Pod](listwatch.ToClientGo(pods.ListerWatcher(options...)))
		}
		return r
	})
}
