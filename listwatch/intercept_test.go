package listwatch_test

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// foreign is a source of another package, with the abilities that it embeds.
type foreign struct {
	listwatch.ListerWatcher[*corev1.Pod]
}

type foreignHolder struct {
	foreign
	holder listwatch.Holder[*corev1.Pod]
}

func (f foreignHolder) Holding(held func(string) (*corev1.Pod, bool)) listwatch.ListerWatcher[*corev1.Pod] {
	return f.holder.Holding(held)
}

// TestInterceptSeesEachRequestAndWhatComes, for sources of this package and of others.
func TestInterceptSeesEachRequestAndWhatComes(t *testing.T) {
	cs := clientset(t, serve(t, answerBoth(protobufType, encode(t, protobufType, v1Version, podList(3)),
		frames(t, protobufType, v1Version, watch.Event{Type: watch.Modified, Object: podList(1).Items[0].DeepCopy()}))))
	source := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods")
	for name, from := range map[string]listwatch.ListerWatcher[*corev1.Pod]{
		"own": source, "foreign": foreign{source}, "foreign holder": foreignHolder{foreign{source}, source},
	} {
		var requests []string
		var seen int
		through := listwatch.Intercept(from,
			func(request metav1.ListOptions, list listwatch.List[*corev1.Pod]) listwatch.List[*corev1.Pod] {
				requests = append(requests, "list "+request.ResourceVersion)
				items := list.Items
				list.Items = func(yield func(*corev1.Pod, error) bool) {
					for obj, err := range items {
						seen++
						if !yield(obj, err) {
							return
						}
					}
				}
				return list
			},
			func(
				request metav1.ListOptions, events iter.Seq2[listwatch.Event[*corev1.Pod], error],
			) iter.Seq2[listwatch.Event[*corev1.Pod], error] {
				requests = append(requests, "watch "+request.ResourceVersion)
				return func(yield func(listwatch.Event[*corev1.Pod], error) bool) {
					for event, err := range events {
						event.ResourceVersion = "changed"
						if !yield(event, err) {
							return
						}
					}
				}
			})
		pods, _, errs := readList(through.List(t.Context(), metav1.ListOptions{ResourceVersion: "1"}))
		require.Empty(t, errs, name)
		require.Len(t, pods, 3, name)
		events, errs := readWatch(through.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "2"}))
		require.Empty(t, errs, name)
		require.Equal(t, "changed", events[0].ResourceVersion, name)

		// A held object is not decoded, and passes the functions all the same.
		copied := store.NewIndexer[*corev1.Pod]()
		holding := through.Holding(func(key string) (*corev1.Pod, bool) { return copied.Snapshot().Get(key) })
		for range 2 {
			pods, _, errs = readList(holding.List(t.Context(), metav1.ListOptions{ResourceVersion: "3"}))
			require.Empty(t, errs, name)
			require.NoError(t, copied.Replace(store.Items(pods...), store.At("3")))
		}
		again, _, _ := readList(holding.List(t.Context(), metav1.ListOptions{ResourceVersion: "3"}))
		require.Equal(t, name != "foreign", pods[0] == again[0], name)
		require.Equal(t, []string{"list 1", "watch 2", "list 3", "list 3", "list 3"}, requests, name)
		require.Equal(t, 12, seen, name)
	}
}

// TestInterceptWithoutFunctions changes nothing.
func TestInterceptWithoutFunctions(t *testing.T) {
	funcs := &podFuncs{list: podList(2)}
	source := listwatch.FromFuncs[*corev1.Pod](funcs.List, funcs.Watch, listwatch.WithoutWatchList())
	through := listwatch.Intercept[*corev1.Pod](source, nil, nil)
	pods, _, errs := readList(through.List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	require.Len(t, pods, 2)
	require.False(t, watchlist.Supported(through))
	require.PanicsWithValue(t, "listwatch: Intercept: the source is nil (*listwatch.ListWatch[*k8s.io/api/core/v1.Pod])", func() {
		listwatch.Intercept[*corev1.Pod]((*listwatch.ListWatch[*corev1.Pod])(nil), nil, nil)
	})
}

func TestSupportsWatchList(t *testing.T) {
	funcs := &podFuncs{}
	without := listwatch.FromFuncs[*corev1.Pod](funcs.List, funcs.Watch, listwatch.WithoutWatchList())
	require.True(t, watchlist.Supported(listwatch.FromFuncs[*corev1.Pod](funcs.List, funcs.Watch)))
	require.False(t, watchlist.Supported(without))
	require.True(t, watchlist.Supported(foreign{without}), "it has no such method")
	require.False(t, watchlist.Supported(listwatch.ToClientGo(without)))
	require.True(t, watchlist.Supported(&cache.ListWatch{}))
	require.True(t, watchlist.Supported(nil))
}
