package listwatchtest

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
)

// Rig is a pod collection under test, with the means to write to it. [Conform] writes pods without
// a node, which no kubelet touches. A real server needs the namespace and its default service
// account.
type Rig struct {
	// Source reads the collection: all namespaces unless options narrow it.
	Source func(options ...listwatch.Option) listwatch.ListerWatcher[*corev1.Pod]
	// Namespace is the suite's own: it is empty, and has no other writer.
	Namespace string

	// Create, Update and UpdateStatus write a pod and return it as stored.
	Create, Update, UpdateStatus func(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error)
	// Delete deletes a pod by name, without a grace period.
	Delete func(ctx context.Context, name string) error

	// Expire returns when every resource version and continue token so far is too old. If it is
	// nil, subtests that need it are skipped.
	Expire func()
	// Bookmark makes watches that allow bookmarks send one. If it is nil, subtests wait for the
	// bookmark that a server sends right before it ends a watch (KEP-956).
	Bookmark func()
}

// Conform checks the promises of lists and watches that a reflector, or any other client, relies
// on. It runs on this fake through each of its doors, on a real API server, and on any server that
// claims to behave like one. Each subtest gets a new rig.
//
// It compares nothing that a server is free to choose: versions are opaque, and lists are compared
// in name order.
func Conform(t *testing.T, newRig func(t *testing.T) Rig) {
	t.Helper()
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			row.check(&probe{T: t, Rig: r, source: r.Source(listwatch.InNamespace(r.Namespace))})
		})
	}
}

var rows = []struct {
	name  string
	check func(*probe)
}{
	{"list/latest", listLatest},
	{"list/any version", listAny},
	{"list/not older than", listNotOlderThan},
	{"list/exact version", listExact},
	{"list/pages are one state", listPages},
	{"list/selectors", listSelectors},
	{"list/malformed requests", listMalformed},
	{"list/too large version", listTooLarge},
	{"watch/from each version, no gap and no duplicate", watchFromEachVersion},
	{"watch/state first without a version", watchStateFirst},
	{"watch/list", watchList},
	{"watch/list with selectors", watchListSelectors},
	{"watch/list needs its match", watchListMalformed},
	{"watch/labels that start and stop to match", watchLabels},
	{"watch/fields that start and stop to match", watchFields},
	{"watch/deletion carries the last state", watchDeletion},
	{"watch/deletion with finalizers", watchFinalizers},
	{"watch/same name, another object", watchRecreated},
	{"watch/bookmark", watchBookmark},
	{"watch/ends at its timeout", watchTimeout},
	{"watch/an update without a change is no event", watchNoChange},
	{"expired/watch", expiredWatch},
	{"expired/exact list", expiredExact},
	{"expired/pages", expiredPages},
}

// probe is one subtest.
type probe struct {
	*testing.T
	Rig
	source listwatch.ListerWatcher[*corev1.Pod]
}

// answerTime is the limit for every answer except a bookmark that the server sends by itself.
const (
	answerTime   = 30 * time.Second
	bookmarkTime = 3 * time.Minute
)

// pod creates a pod with labels in pairs: "app", "web" for app=web.
func (p *probe) pod(name string, labels ...string) *corev1.Pod {
	p.Helper()
	grace := int64(0)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name, Labels: map[string]string{}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "c", Image: "example.com/image"}},
		},
	}
	for i := 0; i+1 < len(labels); i += 2 {
		pod.Labels[labels[i]] = labels[i+1]
	}
	return p.written(p.Create(p.Context(), pod))
}

func (p *probe) written(pod *corev1.Pod, err error) *corev1.Pod {
	p.Helper()
	require.NoError(p, err)
	return pod
}

func (p *probe) label(pod *corev1.Pod, key, value string) *corev1.Pod {
	p.Helper()
	pod = pod.DeepCopy()
	metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value)
	return p.written(p.Update(p.Context(), pod))
}

func (p *probe) delete(name string) {
	p.Helper()
	require.NoError(p, p.Delete(p.Context(), name))
}

// expire skips the subtest if the rig cannot expire versions.
func (p *probe) expire() {
	p.Helper()
	if p.Expire == nil {
		p.Skip("this rig cannot expire versions")
	}
	p.Expire()
}

func (p *probe) list(options metav1.ListOptions) (pods []*corev1.Pod, meta metav1.ListMeta, err error) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), answerTime)
	defer cancel()
	list := p.source.List(ctx, options)
	for pod, failed := range list.Items {
		if failed != nil {
			return nil, metav1.ListMeta{}, failed
		}
		pods = append(pods, pod)
	}
	return pods, list.Meta(), nil
}

// listed requires a complete list.
func (p *probe) listed(options metav1.ListOptions) ([]*corev1.Pod, metav1.ListMeta) {
	p.Helper()
	pods, meta, err := p.list(options)
	require.NoError(p, err)
	require.NotEmpty(p, meta.ResourceVersion)
	return pods, meta
}

func names(pods []*corev1.Pod) []string {
	names := []string{}
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

// stream is one watch, pulled event by event.
type stream struct {
	p    *probe
	pull func() (listwatch.Event[*corev1.Pod], error, bool)
}

// watch opens a watch that ends with the subtest. The request is sent when the first event is
// pulled.
func (p *probe) watch(options metav1.ListOptions) *stream {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), bookmarkTime)
	pull, stop := iter.Pull2(p.source.Watch(ctx, options))
	p.Cleanup(func() {
		cancel()
		stop()
	})
	return &stream{p, pull}
}

func (p *probe) watchFrom(pod *corev1.Pod) *stream {
	p.Helper()
	return p.watch(metav1.ListOptions{ResourceVersion: pod.ResourceVersion})
}

func (s *stream) next() listwatch.Event[*corev1.Pod] {
	s.p.Helper()
	e, err, ok := s.pull()
	require.NoError(s.p, err)
	require.True(s.p, ok, "the watch ended where an event was due")
	return e
}

// require pulls one event and compares it with the pod that was written.
func (s *stream) require(kind watch.EventType, want *corev1.Pod) *corev1.Pod {
	s.p.Helper()
	e := s.next()
	// A kind with graceful deletion is first marked as deleted.
	for kind == watch.Deleted && e.Type == watch.Modified && e.Object.DeletionTimestamp != nil {
		e = s.next()
	}
	require.Equal(s.p, kind, e.Type)
	require.Equal(s.p, want.Name, e.Object.Name)
	require.Equal(s.p, want.UID, e.Object.UID)
	require.Equal(s.p, e.Object.ResourceVersion, e.ResourceVersion)
	if kind != watch.Deleted {
		require.Equal(s.p, want.ResourceVersion, e.ResourceVersion)
	}
	return e.Object
}

// failure pulls the error that ends a watch.
func (s *stream) failure() error {
	s.p.Helper()
	_, err, ok := s.pull()
	require.True(s.p, ok, "the watch ended where an error was due")
	require.Error(s.p, err)
	return err
}
