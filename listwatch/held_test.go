package listwatch_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

func TestAnObjectThatIsHeldIsNotDecodedAgain(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			newer, reborn := pod(1), pod(2)
			newer.ResourceVersion = "9000"
			reborn.UID = "another"
			items := []corev1.Pod{*pod(0), *newer, *reborn, *pod(3)}
			body := encode(t, media, v1Version, &corev1.PodList{Items: items})
			var events []watch.Event
			for i := range items {
				events = append(events, watch.Event{Type: watch.Added, Object: &items[i]})
			}
			cs := clientset(t, serve(t, answerBoth(media, body, frames(t, media, v1Version, events...))))
			copied := store.NewIndexer[*corev1.Pod]()
			require.NoError(t, copied.Replace(store.Items(pod(0), pod(1), pod(2)), store.At("1")))
			lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods").Holding(copied.Snapshot().Get)

			listed, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			seen, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			for i := range items {
				held, _ := copied.Snapshot().Get(store.KeyOf(&items[i]))
				require.Equal(t, i == 0, held == listed[i], "object %d of the list", i)
				require.Equal(t, i == 0, held == seen[i].Object, "object %d of the watch", i)
				for _, got := range []*corev1.Pod{listed[i], seen[i].Object} {
					require.Equal(t, items[i].UID, got.UID)
					require.Equal(t, items[i].ResourceVersion, got.ResourceVersion)
				}
			}
		})
	}
}

func TestHoldingKeepsWhatElseIsKnownOfASource(t *testing.T) {
	cs := clientset(t, serve(t, answer(500, jsonType, nil)))
	lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods", listwatch.WithoutWatchList())
	holding, ok := lw.Holding(store.Snapshot[*corev1.Pod]{}.Get).(*listwatch.ListWatch[*corev1.Pod])
	require.True(t, ok)
	require.True(t, holding.IsWatchListSemanticsUnSupported())
}
