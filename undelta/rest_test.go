package undelta_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/listwatch/listwatchtest"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/store/packed"
	"github.com/tributary-go/tributary/undelta"
)

// TestOverAStoreAtRest: each change that a reflector brings in bytes is one push of the state with
// it, and a failed one and a bookmark are none.
func TestOverAStoreAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := listwatchtest.New(t, listwatchtest.Pods())
		named := func(name string) *corev1.Pod {
			return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		}
		pods.Create(named("a"))
		at := packed.New[corev1.Pod]()
		var pushed [][]string
		over := undelta.Over(at, func(now store.Snapshot[*corev1.Pod]) {
			names := []string{}
			for _, pod := range now.Sorted() {
				names = append(names, pod.Name)
			}
			pushed = append(pushed, names)
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- reflector.New(pods.ListerWatcher().Encoded(), over).Run(ctx) }()
		synctest.Wait()
		pods.Create(named("b"))
		synctest.Wait()
		pods.Remove(named("a"))
		synctest.Wait()
		want := [][]string{{"a"}, {"a", "b"}, {"b"}}
		require.Equal(t, want, pushed)
		stop()
		require.NoError(t, <-ended)
		refused := errors.New("refused")
		require.ErrorIs(t, over.Replace(func(yield func(*store.Encoded, error) bool) { yield(nil, refused) }, store.At("9")), refused)
		require.NoError(t, over.Bookmark("99"))
		require.Equal(t, want, pushed)
		require.PanicsWithValue(t, "undelta: Over: the function that is to be pushed to is nil", func() {
			undelta.Over[*corev1.Pod](at, nil)
		})
	})
}
