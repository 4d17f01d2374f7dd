package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// subject is a cache that is measured.
type subject interface {
	// update makes a write of so many bytes; zero: unknown. The pod is the cache's from then on.
	update(pod *corev1.Pod, bytes int) error
	// watch begins a watch after a version, of one node if it is not empty. It calls take with the
	// version of each event, and lost once the watch has ended.
	watch(ctx context.Context, node, version string, take func(version string), lost func(error)) error
}

var errEnded = errors.New("the watch has ended")

// newSubject makes a cache that holds pods. Options are for ours.
func newSubject(ctx context.Context, library string, pods []*corev1.Pod, version string, options ...watchcache.Option) subject {
	if library == "cacher" {
		return newTheirs(ctx, pods, version)
	}
	c := harness.Must(watchcache.NewCache(watchcache.Pods(), options...))
	harness.Check(c.Replace(store.Items(pods...), store.At(version)))
	return ours{c, library == untold}
}

type ours struct {
	cache  *watchcache.Cache[*corev1.Pod]
	untold bool
}

func (o ours) update(pod *corev1.Pod, bytes int) error {
	if o.untold {
		return o.cache.Update(pod)
	}
	return o.cache.PutSized(pod, bytes)
}

func (o ours) watcher(node, version string) (*watchcache.Watcher[*corev1.Pod], error) {
	r := watchcache.Request{}
	r.ResourceVersion, r.AllowWatchBookmarks = version, true
	if node != "" {
		r.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node)
	}
	return o.cache.Watcher(r)
}

// watch has a goroutine.
func (o ours) watch(ctx context.Context, node, version string, take func(string), lost func(error)) error {
	w, err := o.watcher(node, version)
	if err != nil {
		return err
	}
	go func() {
		for {
			events, err := w.Next(ctx)
			if err != nil || len(events) == 0 {
				lost(errors.Join(errEnded, err))
				return
			}
			takeAll(events, take)
		}
	}()
	return nil
}

func takeAll(events []watchcache.Delivery[*corev1.Pod], take func(version string)) {
	for i := range events {
		if e := &events[i]; e.Type != watch.Bookmark {
			take(e.Object.ResourceVersion)
		}
	}
}

// theirs is the API server's cacher over a storage in memory.
type theirs struct {
	cacher  *cacher.Cacher
	storage *inMemory
}

const prefix = "/pods/"

func newTheirs(ctx context.Context, pods []*corev1.Pod, version string) subject {
	// The channel is as long as that of the storage on etcd.
	m := &inMemory{pods: pods, version: version, events: make(chan watch.Event, 100)}
	c := harness.Must(cacher.NewCacherFromConfig(cacher.Config{
		Storage: m, Versioner: storage.APIObjectVersioner{}, GroupResource: schema.GroupResource{Resource: "pods"},
		EventsHistoryWindow: cacher.DefaultEventFreshDuration, ResourcePrefix: prefix, GetAttrsFunc: attributes,
		KeyFunc: func(obj runtime.Object) (string, error) {
			p := obj.(*corev1.Pod)
			return prefix + p.Namespace + "/" + p.Name, nil
		},
		IndexerFuncs: storage.IndexerFuncs{nodeName: func(obj runtime.Object) string { return obj.(*corev1.Pod).Spec.NodeName }},
		Indexers: &cache.Indexers{storage.FieldIndex(nodeName): func(obj any) ([]string, error) {
			return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
		}},
		NewFunc: func() runtime.Object { return &corev1.Pod{} }, NewListFunc: func() runtime.Object { return &corev1.PodList{} },
		Codec: scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion),
	}))
	harness.Check(c.Wait(ctx))
	return &theirs{c, m}
}

const nodeName = "spec.nodeName"

// attributes has the fields that the API server's pods have.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	p := obj.(*corev1.Pod)
	return p.Labels, fields.Set{
		"metadata.name": p.Name, "metadata.namespace": p.Namespace, nodeName: p.Spec.NodeName,
		"spec.restartPolicy": string(p.Spec.RestartPolicy), "spec.schedulerName": p.Spec.SchedulerName,
		"spec.serviceAccountName": p.Spec.ServiceAccountName, "spec.hostNetwork": fmt.Sprint(p.Spec.HostNetwork),
		"status.phase": string(p.Status.Phase), "status.podIP": p.Status.PodIP,
		"status.nominatedNodeName": p.Status.NominatedNodeName,
	}, nil
}

func (t *theirs) update(pod *corev1.Pod, _ int) error {
	t.storage.events <- watch.Event{Type: watch.Modified, Object: pod}
	return nil
}

func (t *theirs) watch(ctx context.Context, node, version string, take func(string), lost func(error)) error {
	selector := fields.Everything()
	if node != "" {
		selector = fields.OneTermEqualSelector(nodeName, node)
	}
	w, err := t.cacher.Watch(ctx, prefix, storage.ListOptions{ResourceVersion: version, Recursive: true, Predicate: predicate(selector, true)})
	if err != nil {
		return err
	}
	go func() {
		for e := range w.ResultChan() {
			obj, ok := e.Object.(metav1.Object) // the object itself would be a copy
			if !ok {
				lost(fmt.Errorf("%w: %v", errEnded, e.Object))
				return
			}
			if e.Type != watch.Bookmark {
				take(obj.GetResourceVersion())
			}
		}
		lost(errEnded)
	}()
	return nil
}

func predicate(selector fields.Selector, bookmarks bool) storage.SelectionPredicate {
	return storage.SelectionPredicate{
		Label: labels.Everything(), Field: selector, GetAttrs: attributes, IndexFields: []string{nodeName}, AllowWatchBookmarks: bookmarks,
	}
}

// inMemory is the storage under the cacher: a list, and a channel of events.
type inMemory struct {
	storage.Interface // what the cacher does not call
	pods              []*corev1.Pod
	version           string
	events            chan watch.Event
}

func (m *inMemory) Versioner() storage.Versioner                        { return storage.APIObjectVersioner{} }
func (m *inMemory) ReadinessCheck() error                               { return nil }
func (m *inMemory) RequestWatchProgress(context.Context) error          { return nil }
func (m *inMemory) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }
func (m *inMemory) CompactRevision() int64                              { return 0 }
func (m *inMemory) GetCurrentResourceVersion(context.Context) (uint64, error) {
	return storage.APIObjectVersioner{}.ParseResourceVersion(m.version)
}

func (m *inMemory) GetList(_ context.Context, _ string, _ storage.ListOptions, into runtime.Object) error {
	list := into.(*corev1.PodList)
	list.ListMeta = metav1.ListMeta{ResourceVersion: m.version}
	for _, p := range m.pods {
		list.Items = append(list.Items, *p)
	}
	return nil
}

func (m *inMemory) Watch(_ context.Context, _ string, o storage.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil && *o.SendInitialEvents {
		return nil, errors.New("this storage lists")
	}
	return m, nil
}

// IsWatchListSemanticsUnSupported makes the cacher's reflector list.
func (m *inMemory) IsWatchListSemanticsUnSupported() bool { return true }

func (m *inMemory) Stop()                          {}
func (m *inMemory) ResultChan() <-chan watch.Event { return m.events }

// patience is how long an event may take before the measurement is given up.
const patience = time.Minute
