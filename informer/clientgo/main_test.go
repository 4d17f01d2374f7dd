package clientgo_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // a test that reads logs sets its own logger
	goleak.VerifyTestMain(m)
}

func onNode(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func byNode(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("a %T is no pod", obj)
	}
	return []string{pod.Spec.NodeName}, nil
}

// running calls run until stop is called or the test ends.
func running(t testing.TB, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// versioned is what a cache.Store has from client-go 0.36 on. Ours has it with all.
type versioned interface {
	Bookmark(string)
	LastStoreSyncResourceVersion() string
}

// synced waits, with each release of client-go.
func synced(t testing.TB, of interface{ HasSynced() bool }) {
	t.Helper()
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), of.HasSynced))
}
