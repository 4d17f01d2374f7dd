package unittest

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

func TestCopySurvivesAnExpiredVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // minutes of waiting take no time
		server := listwatchtest.New(t, listwatchtest.Pods())
		pods := store.NewIndexer[*corev1.Pod]()
		r := reflector.New(server.ListerWatcher(), pods)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(t.Context()) }()
		t.Cleanup(func() { require.NoError(t, <-ended) })
		require.NoError(t, r.WaitSynced(t.Context()))

		server.Expire() // every version that the reflector has seen is too old: 410
		server.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		server.Server().AwaitWatches(1) // it has listed again
		synctest.Wait()
		require.Equal(t, 1, pods.Snapshot().Len())
		require.Equal(t, 1, r.Status().Lists[reflector.Expired])
	})
}
