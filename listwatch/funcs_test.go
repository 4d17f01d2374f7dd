package listwatch_test

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tributary-go/tributary/listwatch"
)

// podFuncs are functions with given answers, which keep the options of their calls.
type podFuncs struct {
	list    *corev1.PodList
	err     error
	stream  watch.Interface
	options []metav1.ListOptions
}

func (p *podFuncs) List(_ context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	p.options = append(p.options, options)
	return p.list, p.err
}

func (p *podFuncs) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	p.options = append(p.options, options)
	return p.stream, p.err
}

func TestFuncsOfTheFakeClientset(t *testing.T) {
	cs := fake.NewClientset(pod(0), pod(1))
	pods := cs.CoreV1().Pods("shop")
	lw := listwatch.FromFuncs[*corev1.Pod](pods.List, pods.Watch, listwatch.WithoutWatchList())
	require.True(t, lw.IsWatchListSemanticsUnSupported())
	got, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	require.Len(t, got, 2)
	require.Equal(t, pod(1).Name, got[1].Name)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream := watch.NewFakeWithChanSize(2, false)
	stream.Add(pod(2))
	stream.Delete(pod(0))
	funcs := &podFuncs{stream: stream}
	lw = listwatch.FromFuncs[*corev1.Pod](funcs.List, funcs.Watch)
	var seen []watch.EventType
	for event, err := range lw.Watch(ctx, metav1.ListOptions{}) {
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			break
		}
		if seen = append(seen, event.Type); len(seen) == 2 {
			cancel()
		}
	}
	require.Equal(t, []watch.EventType{watch.Added, watch.Deleted}, seen)
	require.True(t, stream.IsStopped())
}

func TestFuncsOfTheDynamicFake(t *testing.T) {
	client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, pod(0))
	pods := client.Resource(v1Version.WithResource("pods")).Namespace("shop")
	lw := listwatch.FromFuncs[*unstructured.Unstructured](
		func(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
			return pods.List(ctx, o)
		}, pods.Watch)
	got, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	require.Len(t, got, 1)
	require.Equal(t, pod(0).Name, got[0].GetName())
	require.Equal(t, "Pod", got[0].GetKind())
}

func TestFuncsGetTheSelectors(t *testing.T) {
	funcs := &podFuncs{list: &corev1.PodList{}, stream: watch.NewEmptyWatch()}
	lw := listwatch.FromFuncs[*corev1.Pod](funcs.List, funcs.Watch,
		listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", "node-1")), listwatch.Labels(labels.SelectorFromSet(labels.Set{"app": "web"})))
	_, _, _ = readList(lw.List(t.Context(), metav1.ListOptions{Limit: 5}))
	_, _ = readWatch(lw.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5"}))
	require.Equal(t, []metav1.ListOptions{
		{FieldSelector: "spec.nodeName=node-1", LabelSelector: "app=web", Limit: 5},
		{FieldSelector: "spec.nodeName=node-1", LabelSelector: "app=web", ResourceVersion: "5"},
	}, funcs.options)
}

func TestFuncsKeepTheListsMetadata(t *testing.T) {
	list := podList(1)
	// Since client-go 0.36.
	if shard := reflect.ValueOf(&list.ListMeta).Elem().FieldByName("ShardInfo"); shard.IsValid() {
		shard.Set(reflect.New(shard.Type().Elem()))
	}
	funcs := &podFuncs{list: list}
	_, meta, errs := readList(listwatch.FromFuncs[*corev1.Pod](funcs.List, funcs.Watch).List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	require.Equal(t, list.ListMeta, meta)
}

func TestFuncsErrors(t *testing.T) {
	funcs := &podFuncs{err: apierrors.NewTooManyRequests("slow down", 3)}
	lw := listwatch.FromFuncs[*corev1.Pod](funcs.List, funcs.Watch)
	_, _, errs := readList(lw.List(t.Context(), metav1.ListOptions{}))
	require.Len(t, errs, 1)
	require.True(t, apierrors.IsTooManyRequests(errs[0]))
	_, errs = readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
	require.Len(t, errs, 1)
	require.True(t, apierrors.IsTooManyRequests(errs[0]))
}

func TestFuncsEventsThatCannotBeUsed(t *testing.T) {
	stream := watch.NewFakeWithChanSize(6, false)
	stream.Add(configMap(1))
	stream.Action("MOVED", pod(0))
	stream.Action(watch.Bookmark, podEvents(0)[0].Object)
	stream.Error(pod(0))
	funcs := &podFuncs{stream: stream}
	events, errs := readWatch(listwatch.FromFuncs[*corev1.Pod](funcs.List, funcs.Watch).Watch(t.Context(), metav1.ListOptions{}))
	require.Len(t, events, 1)
	require.True(t, events[0].InitialEventsEnd)
	require.Equal(t, "5000", events[0].ResourceVersion)
	require.Len(t, errs, 3)
	require.EqualError(t, errs[0], "watch: ADDED event of object shop/settings-1 cannot be used: the object is a *v1.ConfigMap, not a *v1.Pod")
	require.EqualError(t, errs[1], "watch: unknown event of object shop/"+pod(0).Name+" cannot be used: only ADDED, MODIFIED, DELETED, BOOKMARK and ERROR are defined")
	require.EqualError(t, errs[2], "watch: the server reported an error that cannot be decoded", "and the object is not printed")
	require.True(t, stream.IsStopped())
}

func TestFuncsWatchEndsWithItsStatus(t *testing.T) {
	stream := watch.NewFakeWithChanSize(2, false)
	gone := apierrors.NewResourceExpired("too old").Status()
	stream.Error(&gone)
	funcs := &podFuncs{stream: stream}
	events, errs := readWatch(listwatch.FromFuncs[*corev1.Pod](funcs.List, funcs.Watch).Watch(t.Context(), metav1.ListOptions{}))
	require.Empty(t, events)
	require.Len(t, errs, 1)
	require.True(t, apierrors.IsResourceExpired(errs[0]))
}

func TestFuncsWatchThatEnds(t *testing.T) {
	stream := watch.NewFake()
	stream.Stop()
	funcs := &podFuncs{stream: stream}
	lw := listwatch.FromFuncs[*corev1.Pod](funcs.List, funcs.Watch)
	_, errs := readWatch(lw.Watch(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs, "a closed channel is a clean end")

	// Clients also close the channel when the context ends, which is no clean end. The watch may
	// see either first.
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, errs = readWatch(lw.Watch(ctx, metav1.ListOptions{}))
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], context.Canceled)
	}
}

// An item must not keep its list alive.
func TestFuncsItemsAreIndependentOfTheList(t *testing.T) {
	freed := make(chan struct{})
	list := func(context.Context, metav1.ListOptions) (*corev1.PodList, error) {
		items := make([]corev1.Pod, 3, 4)
		for i := range items {
			items[i] = *pod(i)
		}
		runtime.AddCleanup(&items[0], func(freed chan struct{}) { close(freed) }, freed)
		return &corev1.PodList{Items: items}, nil
	}
	funcs := &podFuncs{}
	pods, _, errs := readList(listwatch.FromFuncs[*corev1.Pod](list, funcs.Watch).List(t.Context(), metav1.ListOptions{}))
	require.Empty(t, errs)
	require.Eventually(t, func() bool {
		runtime.GC()
		select {
		case <-freed:
			return true
		default:
			return false
		}
	}, eventually, tick)
	require.Len(t, pods, 3)
}

func TestFuncsListLeftEarly(t *testing.T) {
	funcs := &podFuncs{list: podList(3)}
	count := 0
	for _, err := range listwatch.FromFuncs[*corev1.Pod](funcs.List, funcs.Watch).List(t.Context(), metav1.ListOptions{}).Items {
		require.NoError(t, err)
		count++
		break
	}
	require.Equal(t, 1, count)
}

func TestDecodeErrorUnwraps(t *testing.T) {
	cause := errors.New("cause")
	err := &listwatch.DecodeError{Op: "list", Object: "shop/a", Err: cause}
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "list: object shop/a cannot be used: cause")
}
