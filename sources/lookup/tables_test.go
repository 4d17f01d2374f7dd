package lookup

import (
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/sources"
)

// BenchmarkChanged is what a state costs in which one pod of 110 has changed.
func BenchmarkChanged(b *testing.B) {
	l := New(sources.New("node-1"))
	change := func(from, to int, label string) iter.Seq[sources.PodChange] {
		return func(yield func(sources.PodChange) bool) {
			for i := from; i < to; i++ {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprintf("%032x", i)),
					Labels: map[string]string{"label": label},
				}}
				if !yield(sources.PodChange{Key: "default/" + pod.Name, New: sources.MergedPod{Pod: pod}}) {
					return
				}
			}
		}
	}
	l.changed(change(0, 110, ""))
	one, two := change(0, 1, "one"), change(0, 1, "two")
	b.ReportAllocs()
	for b.Loop() {
		l.changed(one)
		l.changed(two)
	}
	require.Equal(b, "two", l.ByUID(types.UID(fmt.Sprintf("%032x", 0))).Pod.Labels["label"])
}
