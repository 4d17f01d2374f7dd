package agent_test

import (
	"io"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/examples/tutorial/agent"
	"github.com/tributary-go/tributary/listwatch/listwatchtest"
)

func TestEachPodIsMarkedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // backoff takes no time
		pods := listwatchtest.New(t, listwatchtest.Pods())
		pods.Create(podOfNode("web-0"))
		a, err := agent.New(t.Context(), pods.Server().Config(), "node-1", io.Discard)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- a.Pods.Run(t.Context()) }()
		t.Cleanup(func() { require.NoError(t, <-ended) })
		synctest.Wait() // web-0 is marked

		pods.Expire() // "too old resource version": the copy must list again
		pods.Create(podOfNode("web-1"))
		pods.Server().AwaitWatches(1)
		synctest.Wait() // web-1 is marked

		require.Len(t, pods.Server().Requests(listwatchtest.Patch), 2)
		for _, pod := range a.Pods.Snapshot().All() {
			require.Equal(t, "yes", pod.Annotations["example.com/seen"], pod.Name)
		}
	})
}

func podOfNode(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "web"}}},
	}
}
