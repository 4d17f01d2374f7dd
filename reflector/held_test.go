package reflector_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// holding remembers what it is told to hold.
type holding struct {
	forever
	held func(key string) (*corev1.Pod, bool)
}

func (h *holding) Holding(held func(key string) (*corev1.Pod, bool)) listwatch.ListerWatcher[*corev1.Pod] {
	h.held = held
	return h
}

// A source that can do without decoding what the store holds is told what that is, at any time.
func TestASourceIsToldWhatTheStoreHolds(t *testing.T) {
	source, pods := &holding{}, store.NewIndexer[*corev1.Pod]()
	reflector.New(source, pods)
	_, ok := source.held("shop/web")
	require.False(t, ok)
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	require.NoError(t, pods.Add(web))
	got, ok := source.held("shop/web")
	require.True(t, ok)
	require.Same(t, web, got)
}
