package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/store"
)

func TestNilIsNamed(t *testing.T) {
	byName := store.NewIndex("name", func(p *corev1.Pod) []string { return []string{p.Name} })
	require.PanicsWithValue(t, `store: NewIndex: the function of index "node" is nil`, func() {
		store.NewIndex[*corev1.Pod, string]("node", nil)
	})
	const second = "store: NewIndexer: index 2 is nil: make it with NewIndex"
	require.PanicsWithValue(t, second, func() { store.NewIndexer[*corev1.Pod](byName, nil) })
	require.PanicsWithValue(t, second, func() {
		store.NewIndexer[*corev1.Pod](byName, (*store.Index[*corev1.Pod, string])(nil))
	})
}
