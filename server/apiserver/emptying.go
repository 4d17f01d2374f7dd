package apiserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// emptier empties the namespaces that are being deleted, and then lets them go, as the namespace
// controller does beside a real API server. It has a goroutine for each such namespace. Several
// servers on one storage may do so at once: each step is right when another server has made it.
type emptier[T store.Object] struct {
	namespaces *resourceEndpoint[T]
	server     *Server

	mu   sync.Mutex
	busy map[string]bool // namespaces with a goroutine; true if one has changed meanwhile
}

// EmptiesNamespaces is for the namespaces of a server that serves all resources of a storage, such
// as an etcd. When a namespace is being deleted, the server deletes the objects in it, and then
// lets it go. [Serve] does so always. Without it, a namespace stays until another program, such as
// a namespace controller, has emptied it. Complete is asked before a namespace goes, and may be
// nil. Its error, such as of a resource that is not served yet, delays the namespace and shows in
// its conditions.
func EmptiesNamespaces(complete func(context.Context) error) ServeOption {
	if complete == nil {
		complete = func(context.Context) error { return nil }
	}
	return func(s *serving) { s.complete = complete }
}

const (
	emptierName    = "kube-controller-manager" // the field manager, as there
	emptyFirst     = 10 * time.Millisecond     // between two looks at what is left
	emptyLongest   = time.Second
	lookForEmptied = 10 * time.Second // for namespaces that no event has told of
)

// newEmptier returns nil for a resource other than namespaces, and where another program empties
// them.
func newEmptier[T store.Object](s *Server, e *resourceEndpoint[T]) *emptier[T] {
	_, known := any(e.empty).(*corev1.Namespace)
	if !known || e.collection == nil || !e.serving.owned && e.serving.complete == nil {
		return nil
	}
	return &emptier[T]{namespaces: e, server: s, busy: map[string]bool{}}
}

// consider has a namespace emptied. It may be called under the locks of the cache.
func (k *emptier[T]) consider(obj T) {
	name := obj.GetName()
	if obj.GetDeletionTimestamp() == nil || k.namespaces.ended.Err() != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, busy := k.busy[name]; busy {
		k.busy[name] = true
		return
	}
	k.busy[name] = false
	k.server.running.Go(func() { k.run(k.namespaces.ended, name) })
}

// look finds the namespaces that were being deleted when the cache was filled, which no event tells
// of, until ctx ends.
func (k *emptier[T]) look(ctx context.Context) {
	for ctx.Err() == nil {
		for _, obj := range k.namespaces.cache.Snapshot().All() {
			k.consider(obj)
		}
		pace.Sleep(ctx, lookForEmptied)
	}
}

// run empties one namespace.
func (k *emptier[T]) run(ctx context.Context, name string) {
	for pause := emptyFirst; ; pause = min(2*pause, emptyLongest) {
		again := k.step(ctx, name)
		k.mu.Lock()
		changed := k.busy[name]
		k.busy[name] = false
		if ctx.Err() != nil || !again && !changed {
			delete(k.busy, name)
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		if again {
			pace.Sleep(ctx, pause)
		}
	}
}

// step deletes the objects that are left, notes in the status how far it is, and lets the namespace
// go if none is left. Again: it is still there.
func (k *emptier[T]) step(ctx context.Context, name string) (again bool) {
	namespaces := k.namespaces.collection.As(emptierName)
	stored, err := namespaces.Get("", name)
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	namespace := any(object.Copy(stored)).(*corev1.Namespace)
	ours := slices.Index(namespace.Spec.Finalizers, corev1.FinalizerKubernetes)
	if namespace.DeletionTimestamp == nil || ours < 0 {
		return false // other finalizers are for others to drop
	}
	left := k.server.empty(ctx, name, false)
	if left.nothing() { // as far as the caches know
		left = k.server.empty(ctx, name, true)
	}
	if complete := k.namespaces.serving.complete; complete != nil && left.nothing() {
		left.unknown = complete(ctx)
	}
	if left.nothing() {
		namespace.Spec.Finalizers = slices.Delete(namespace.Spec.Finalizers, ours, ours+1)
		_, err = collection.Finalize(namespaces, namespace)
	} else {
		namespace.Status.Phase = corev1.NamespaceTerminating
		left.note(&namespace.Status)
		_, err = namespaces.UpdateStatus(any(namespace).(T))
	}
	return !left.nothing() || err != nil && !apierrors.IsNotFound(err)
}

// remains are the objects of a namespace that are still there.
type remains struct {
	objects    map[schema.GroupResource]int
	finalizers map[string]int
	failed     []string // deletions
	unknown    error    // not all resources are served
}

func (r *remains) nothing() bool {
	return len(r.objects) == 0 && len(r.failed) == 0 && r.unknown == nil
}

// empty deletes the objects of a namespace: pods first, and the others when no pod is left. Fresh:
// the answer is about the storage, and not about the caches.
func (s *Server) empty(ctx context.Context, namespace string, fresh bool) *remains {
	left := &remains{objects: map[schema.GroupResource]int{}, finalizers: map[string]int{}}
	of := func(these []endpoint) {
		for _, e := range these {
			if err := e.empties(ctx, namespace, fresh, left); err != nil {
				left.failed = append(left.failed, err.Error())
			}
		}
	}
	var pods, others []endpoint
	for _, e := range s.endpoints() {
		if r := e.groupVersionResource(); r.Group == "" && r.Resource == "pods" {
			pods = append(pods, e)
		} else {
			others = append(others, e)
		}
	}
	if of(pods); left.nothing() {
		of(others)
	}
	return left
}

// empties deletes the objects of a namespace, and counts those that are left. Objects that are not
// written here are somebody else's.
func (e *resourceEndpoint[T]) empties(ctx context.Context, namespace string, fresh bool, left *remains) error {
	if e.collection == nil || e.cache.Kind().ClusterScoped {
		return nil
	}
	resource, deleted := e.cache.Kind().GroupResource(), 0
	r := watchcache.Request{Namespace: namespace}
	if !fresh {
		r.ResourceVersion = "0"
	}
	present, err := e.cache.Page(ctx, r)
	if err != nil {
		return err
	}
	if follower := e.serving.follower; follower != nil && fresh {
		if skipped := follower.Status().Skipped; skipped > 0 {
			return fmt.Errorf("%d %s of the storage cannot be read", skipped, resource)
		}
	}
	for _, obj := range present.Objects {
		if obj.GetDeletionTimestamp() != nil {
			continue
		}
		deleted++
		_, err := e.collection.With(collection.WriteOptions{}).Delete(namespace, obj.GetName(), metav1.DeleteOptions{
			PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
		})
		if err != nil && !apierrors.IsNotFound(err) { // another writer was faster
			return err
		}
	}
	if deleted > 0 {
		if present, err = e.cache.Page(ctx, r); err != nil {
			return err
		}
	}
	for _, obj := range present.Objects {
		left.objects[resource]++
		for _, finalizer := range obj.GetFinalizers() {
			left.finalizers[finalizer]++
		}
	}
	return nil
}

// note writes the conditions of a namespace, with the words of the namespace controller.
func (r *remains) note(status *corev1.NamespaceStatus) {
	set := func(kind corev1.NamespaceConditionType, holds bool, reason, message string) {
		next := corev1.NamespaceCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
		}
		if holds {
			next.Status = corev1.ConditionTrue
		}
		i := slices.IndexFunc(status.Conditions, func(c corev1.NamespaceCondition) bool { return c.Type == kind })
		if i < 0 {
			status.Conditions = append(status.Conditions, next)
			return
		}
		if status.Conditions[i].Status == next.Status {
			next.LastTransitionTime = status.Conditions[i].LastTransitionTime
		}
		status.Conditions[i] = next
	}
	if r.unknown != nil {
		set(corev1.NamespaceDeletionDiscoveryFailure, true, "DiscoveryFailed", r.unknown.Error())
	} else {
		set(corev1.NamespaceDeletionDiscoveryFailure, false, "ResourcesDiscovered", "All resources successfully discovered")
	}
	set(corev1.NamespaceDeletionGVParsingFailure, false, "ParsedGroupVersions", "All legacy kube types successfully parsed")
	if len(r.failed) > 0 {
		slices.Sort(r.failed)
		set(corev1.NamespaceDeletionContentFailure, true, "ContentDeletionFailed", fmt.Sprintf(
			"Failed to delete all resource types, %d remaining: %s", len(r.failed), strings.Join(r.failed, ", ")))
	} else {
		set(corev1.NamespaceDeletionContentFailure, false, "ContentDeleted",
			"All content successfully deleted, may be waiting on finalization")
	}
	if len(r.objects) > 0 {
		set(corev1.NamespaceContentRemaining, true, "SomeResourcesRemain", "Some resources are remaining: "+
			counted(r.objects, func(resource schema.GroupResource, n int) string {
				return fmt.Sprintf("%s.%s has %d resource instances", resource.Resource, resource.Group, n)
			}))
	} else {
		set(corev1.NamespaceContentRemaining, false, "ContentRemoved", "All content successfully removed")
	}
	if len(r.finalizers) > 0 {
		set(corev1.NamespaceFinalizersRemaining, true, "SomeFinalizersRemain",
			"Some content in the namespace has finalizers remaining: "+
				counted(r.finalizers, func(finalizer string, n int) string {
					return fmt.Sprintf("%s in %d resource instances", finalizer, n)
				}))
	} else {
		set(corev1.NamespaceFinalizersRemaining, false, "ContentHasNoFinalizers", "All content-preserving finalizers finished")
	}
}

// counted are the texts of counts, in order.
func counted[K comparable](counts map[K]int, text func(K, int) string) string {
	var texts []string
	for key := range maps.Keys(counts) {
		texts = append(texts, text(key, counts[key]))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}
