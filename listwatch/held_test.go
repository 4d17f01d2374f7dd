package listwatch_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/race"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// answers is a server whose answers a test changes.
type answers struct{ list, watch atomic.Value }

func (a *answers) serve(media string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := a.list.Load()
		if r.URL.Query().Get("watch") == "true" {
			body = a.watch.Load()
		}
		answer(http.StatusOK, media, body.([]byte))(w, r)
	}
}

// give sets the pods of a list, and of the initial events of a watch.
func (a *answers) give(t *testing.T, media string, pods ...*corev1.Pod) {
	list := &corev1.PodList{}
	var events []watch.Event
	for _, p := range pods {
		list.Items = append(list.Items, *p)
		events = append(events, watch.Event{Type: watch.Added, Object: p})
	}
	a.list.Store(encode(t, media, v1Version, list))
	a.watch.Store(frames(t, media, v1Version, events...))
}

// readingPods returns a source whose reader holds copied, and the two ways to read the whole state.
func readingPods(t *testing.T, a *answers, media string, copied *store.Indexer[*corev1.Pod], options ...listwatch.Option) (
	*listwatch.ListWatch[*corev1.Pod], map[string]func() []*corev1.Pod,
) {
	cs := clientset(t, serve(t, a.serve(media)))
	source := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods", options...)
	lw := source.Holding(func(key string) (*corev1.Pod, bool) { return copied.Snapshot().Get(key) })
	return source, map[string]func() []*corev1.Pod{
		"list": func() []*corev1.Pod {
			listed, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			return listed
		},
		"watch": func() (seen []*corev1.Pod) {
			events, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			for _, e := range events {
				seen = append(seen, e.Object)
			}
			return seen
		},
	}
}

var waysToDecode = map[string][]listwatch.Option{
	"sharing": nil, "without sharing": {listwatch.WithoutSharing()}, "without managedFields": {listwatch.DropManagedFields()},
}

func eachWayToRead(t *testing.T, test func(t *testing.T, media, way string, options []listwatch.Option)) {
	for _, media := range encodings {
		for _, way := range []string{"list", "watch"} {
			for name, options := range waysToDecode {
				t.Run(fmt.Sprint(media, " ", way, " ", name), func(t *testing.T) { test(t, media, way, options) })
			}
		}
	}
}

func TestTheSameBytesAreNotDecodedAgain(t *testing.T) {
	eachWayToRead(t, func(t *testing.T, media, way string, options []listwatch.Option) {
		a, copied := &answers{}, store.NewIndexer[*corev1.Pod]()
		source, read := readingPods(t, a, media, copied, options...)
		count := 3
		if way == "list" {
			if race.Enabled {
				t.Skip("one goroutine decodes thousands")
			}
			count = 2500 // more than each list compares, which decodes most forms
		}
		var pods []*corev1.Pod
		for i := range count {
			pods = append(pods, pod(i))
		}
		a.give(t, media, pods...)
		first := read[way]()
		require.NoError(t, copied.Replace(store.Items(first...), store.At("1")))
		decoded := source.Sharing().Bytes
		newer := pods[count-1].DeepCopy()
		newer.ResourceVersion = "9000"
		a.give(t, media, append(pods[:count-1:count-1], newer)...)
		second := read[way]()
		for i := range count - 1 {
			require.Same(t, first[i], second[i])
		}
		require.Equal(t, "9000", second[count-1].ResourceVersion)
		require.Less(t, source.Sharing().Bytes-decoded, decoded/2, "one has changed, and a third is compared")
	})
}

// TestAWriteIntoAHeldObjectIsHealed: a list compares all objects of a small collection, and a part
// of a large one. If that part has a fault, the next list compares all.
func TestAWriteIntoAHeldObjectIsHealed(t *testing.T) {
	for _, media := range encodings {
		for count, lists := range map[int]int{40: 1, 2500: 4} {
			t.Run(fmt.Sprint(media, " ", count), func(t *testing.T) {
				if race.Enabled && count > 40 {
					t.Skip("one goroutine decodes thousands")
				}
				var pods []*corev1.Pod
				for i := range count {
					p := pod(i)
					p.Labels = map[string]string{"app": "web"}
					pods = append(pods, p)
				}
				var a answers
				a.give(t, media, pods...)
				copied := store.NewIndexer[*corev1.Pod]()
				_, ways := readingPods(t, &a, media, copied)
				relist := func() {
					require.NoError(t, copied.Replace(store.Items(ways["list"]()...), store.At("9")))
				}
				relist()
				for _, p := range []*corev1.Pod{pods[3], pods[29]} {
					held, _ := copied.Snapshot().Get(store.KeyOf(p))
					held.Labels["app"] = "mine"
				}
				damaged := func() (n int) {
					for _, p := range copied.Snapshot().All() {
						if p.Labels["app"] != "web" {
							n++
						}
					}
					return n
				}
				require.NotZero(t, damaged())
				var line atomic.Value
				klog.SetLogger(funcr.New(func(_, text string) { line.Store(text) }, funcr.Options{}))
				defer klog.SetLogger(logr.Discard())
				for range lists {
					relist()
				}
				require.Zero(t, damaged())
				require.Contains(t, line.Load(), `"msg"="An object of the store is replaced" "error"="it was written into: copy an object before you write" `+
					`"resource"="pods" "object"="shop/`)
			})
		}
	}
}

// A server sends other content under the same version, after an upgrade or after a change of a
// CRD's schema.
func TestOtherContentUnderTheSameVersionIsYielded(t *testing.T) {
	eachWayToRead(t, func(t *testing.T, media, way string, options []listwatch.Option) {
		a, copied := &answers{}, store.NewIndexer[*corev1.Pod]()
		_, read := readingPods(t, a, media, copied, options...)
		a.give(t, media, pod(0), pod(1), pod(2))
		first := read[way]()
		require.NoError(t, copied.Replace(store.Items(first...), store.At("1")))
		defaulted, pruned := pod(0), pod(1)
		defaulted.Spec.SchedulerName = "default-scheduler"
		pruned.Spec.Volumes = nil
		a.give(t, media, defaulted, pruned, pod(2))
		for range 2 { // an object that was not stored is not taken for held
			second := read[way]()
			require.Equal(t, "default-scheduler", second[0].Spec.SchedulerName)
			require.Equal(t, first[0].ResourceVersion, second[0].ResourceVersion)
			require.Empty(t, second[1].Spec.Volumes)
			require.Same(t, first[2], second[2])
		}
		before := copied.Snapshot()
		require.NoError(t, copied.Replace(store.Items(read[way]()...), store.At("2")))
		changed := 0
		for c := range store.Diff(before, copied.Snapshot()) {
			require.False(t, c.Added() || c.Deleted())
			changed++
		}
		require.Equal(t, 2, changed)
		a.give(t, media, pod(0), pod(1), pod(2)) // and back again
		third := read[way]()
		require.Equal(t, first, third)
		require.NotSame(t, first[0], third[0])
	})
}

// Equal content in other bytes is no change: list items and events are written differently, and so
// are encodings.
func TestOtherBytesWithTheSameContentKeepTheObject(t *testing.T) {
	body := `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{},"items":[%s]}`
	event := `{"type":"ADDED","object":%s}` + "\n"
	item := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","uid":"u","resourceVersion":"7"},"spec":{"size":1}}`
	a := &answers{}
	a.list.Store(fmt.Appendf(nil, body, item))
	a.watch.Store(fmt.Appendf(nil, event, strings.ReplaceAll(item, ",", " , ")))
	client := restClient(t, serve(t, a.serve(jsonType)), schema.GroupVersion{Group: "example.com", Version: "v1"})
	copied := store.NewIndexer[*unstructured.Unstructured]()
	lw := listwatch.FromClient[unstructured.Unstructured](client, "widgets").
		Holding(func(key string) (*unstructured.Unstructured, bool) { return copied.Snapshot().Get(key) })
	first, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	require.NoError(t, copied.Replace(store.Items(first...), store.At("1")))
	for range 2 {
		seen, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
		require.Empty(t, errs)
		require.Same(t, first[0], seen[0].Object)
		again, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
		require.Empty(t, errs)
		require.Same(t, first[0], again[0])
	}
	a.list.Store(fmt.Appendf(nil, body, strings.Replace(item, `"size":1`, `"size":1,"color":"red"`, 1)))
	changed, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	require.Equal(t, map[string]any{"size": int64(1), "color": "red"}, changed[0].Object["spec"])
}

func TestMetadataUnderTheSameVersionIsComparedToo(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			a := &answers{}
			give := func(label string) {
				a.list.Store(encode(t, media, metaVersion, &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{
					ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "7", Labels: map[string]string{"l": label}},
				}}}))
			}
			cs := clientset(t, serve(t, a.serve(media)))
			copied := store.NewIndexer[*metav1.PartialObjectMetadata]()
			lw := listwatch.FromClient[metav1.PartialObjectMetadata](cs.CoreV1().RESTClient(), "pods").
				Holding(func(key string) (*metav1.PartialObjectMetadata, bool) { return copied.Snapshot().Get(key) })
			read := func() *metav1.PartialObjectMetadata {
				listed, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
				require.Empty(t, errs)
				require.NoError(t, copied.Replace(store.Items(listed...), store.At("1")))
				now, _ := copied.Snapshot().Get("a")
				return now
			}
			give("one")
			first := read()
			require.Same(t, first, read())
			give("two")
			require.Equal(t, "two", read().Labels["l"])
		})
	}
}

// A list that breaks off changes nothing: its objects must not be taken for held ones.
func TestContentOfAListThatBrokeOffIsNotTakenForHeld(t *testing.T) {
	a, copied := &answers{}, store.NewIndexer[*corev1.Pod]()
	_, read := readingPods(t, a, protobufType, copied)
	a.give(t, protobufType, pod(0))
	require.NoError(t, copied.Replace(store.Items(read["list"]()...), store.At("1")))
	changed := pod(0)
	changed.Spec.NodeName = "node-2"
	a.give(t, protobufType, changed)
	broken := func(yield func(*corev1.Pod, error) bool) {
		_ = yield(read["list"]()[0], nil) && yield(nil, io.ErrUnexpectedEOF)
	}
	require.Error(t, copied.Replace(broken, store.At("2")))
	require.Equal(t, "node-2", read["list"]()[0].Spec.NodeName)
}

func TestHoldingKeepsWhatElseIsKnownOfASource(t *testing.T) {
	cs := clientset(t, serve(t, answer(500, jsonType, nil)))
	lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods", listwatch.WithoutWatchList())
	holding, ok := lw.Holding(store.Snapshot[*corev1.Pod]{}.Get).(*listwatch.ListWatch[*corev1.Pod])
	require.True(t, ok)
	require.True(t, holding.IsWatchListSemanticsUnSupported())
}

// TestAChangeAsksNothingOfTheCopy: only an addition can be of a state that the reader holds. To ask
// for a change makes and hashes a key that the store makes and hashes again. So it is done only for
// the last state of an object that was decoded here, to share its parts.
func TestAChangeAsksNothingOfTheCopy(t *testing.T) {
	for _, media := range encodings {
		t.Run(media, func(t *testing.T) {
			changed := pod(0).DeepCopy()
			changed.ResourceVersion = "9000"
			body := frames(t, media, v1Version,
				watch.Event{Type: watch.Added, Object: pod(0)},
				watch.Event{Type: watch.Modified, Object: changed},
				watch.Event{Type: watch.Deleted, Object: changed})
			cs := clientset(t, serve(t, answerBoth(media, nil, body)))
			asked := 0
			lw := listwatch.FromClient[corev1.Pod](cs.CoreV1().RESTClient(), "pods").Holding(func(string) (*corev1.Pod, bool) {
				asked++
				return nil, false
			})
			events, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
			require.Empty(t, errs)
			require.Len(t, events, 3)
			require.Equal(t, 1, asked)
		})
	}
}
