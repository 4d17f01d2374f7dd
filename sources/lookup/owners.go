package lookup

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/trie"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/internal/checkpoint"
)

// Owners has [Lookup.Owner] look above ReplicaSets and Jobs. The API server is asked for the
// metadata of each ReplicaSet and Job that a pod of the node has as its controller, once. client is
// any REST client of a clientset, such as that of [sources.APIServer]. It needs the verb get of
// replicasets.apps and jobs.batch. Without a client, Run of the sources fails.
//
// An owner is remembered as long as one of its pods, the time of [KeepEnded] included.
// [sources.Checkpoint] keeps it for a restart. A ReplicaSet or Job that is adopted later keeps its
// first owner. A request that fails is made again after a second, then ever later up to five
// minutes. While the server forbids a resource, it is asked for one object every ten minutes.
// [sources.Sources.Status] then has the reason under the source "owners", which is Seen while all
// owners are known, and which no readiness waits for.
func Owners(client rest.Interface) Option {
	return func(l *Lookup) { l.owners = newOwners(client) }
}

// Owner is the workload that a pod belongs to: the controller of its ReplicaSet or Job, or the
// pod's own controller if that is anything else, or has no controller. It is zero for a pod without
// a controller. While known is false, the API server has not told the controller of the ReplicaSet
// or Job yet, and owner is the ReplicaSet or Job itself.
//
// Owner takes no lock and allocates nothing. The pod may be of any source, an update or a look-up.
// Without the option [Owners], only owners are known that the pod itself names.
func (l *Lookup) Owner(pod *corev1.Pod) (owner metav1.OwnerReference, known bool) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil {
		return owner, true
	}
	if resourceOf(controller).Empty() {
		return *controller, true
	}
	if l.owners == nil {
		return *controller, false
	}
	above, known := l.owners.known.Load().Get(textKey(string(controller.UID)))
	if above == nil {
		return *controller, known
	}
	return *above, true
}

// resourceOf is the resource of a controller that may have a controller of its own.
func resourceOf(controller *metav1.OwnerReference) (resource schema.GroupVersionResource) {
	group, err := schema.ParseGroupVersion(controller.APIVersion)
	switch {
	case err != nil:
	case group.Group == "apps" && controller.Kind == "ReplicaSet":
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	case group.Group == "batch" && controller.Kind == "Job":
		return schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	}
	return resource
}

// owned is a ReplicaSet or Job that pods have as their controller.
type owned struct {
	resource        schema.GroupVersionResource
	namespace, name string
	uid             types.UID
}

// ownedBy is the controller of a pod, if the API server is to be asked for it.
func ownedBy(pod *corev1.Pod) (object owned, ok bool) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil || controller.UID == "" {
		return object, false
	}
	resource := resourceOf(controller)
	return owned{resource, pod.Namespace, controller.Name, controller.UID}, !resource.Empty()
}

// controllers has the controller of each object, by UID. An object that has none has nil.
type controllers = trie.Map[string, *metav1.OwnerReference]

const (
	ownerRetry    = time.Second
	ownerMaxRetry = 5 * time.Minute
	// forbiddenRetry is how long a forbidden resource is left alone: a person has to mend it.
	forbiddenRetry = 10 * time.Minute
)

// owners asks the API server for the controllers of objects. Its users never wait for it.
type owners struct {
	client rest.Interface
	pods   *sources.Sources
	known  atomic.Pointer[controllers] // of objects in used

	mu    sync.Mutex // guards the fields below
	log   logr.Logger
	queue workqueue.TypedRateLimitingInterface[owned] // set by start, before any object is used
	saver *checkpoint.Saver[ownerState]               // nil: no checkpoint
	used  map[types.UID]owned
	// restored is of the checkpoint, and not in used. It is nil once every source has been read.
	restored map[types.UID]*metav1.OwnerReference
	health   ownerHealth
}

func newOwners(client rest.Interface) *owners {
	o := &owners{client: client, used: map[types.UID]owned{}, health: ownerHealth{faults: map[schema.GroupResource]*ownerFault{}}}
	o.known.Store(&controllers{})
	return o
}

// start restores the owners of the checkpoint, before any source runs. work asks for others until
// ctx ends.
func (o *owners) start(ctx context.Context) (work func(), err error) {
	if null.Is(o.client) {
		return nil, fmt.Errorf("Owners was given no client (%T): a fake clientset of client-go has none", o.client)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = klog.FromContext(ctx).WithValues("source", ownersSource)
	o.queue = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[owned](ownerRetry, ownerMaxRetry))
	if folder := o.pods.Checkpoints(); folder != "" {
		o.restoreLocked(checkpoint.In(folder, o.pods.Node(), "", ownerContent))
	}
	return func() { o.run(ctx) }, nil
}

func (o *owners) run(ctx context.Context) {
	if o.saver != nil {
		defer o.saver.Run()()
	}
	var settling sync.WaitGroup
	defer settling.Wait()
	settling.Go(func() {
		select {
		case <-o.pods.Synced():
			o.settle()
		case <-ctx.Done():
		}
	})
	defer context.AfterFunc(ctx, o.queue.ShutDown)()
	for {
		object, ended := o.queue.Get()
		if ended {
			return
		}
		o.ask(ctx, object)
		o.queue.Done(object)
	}
}

// ask asks for one object, unless it has gone out of use or its resource is forbidden.
func (o *owners) ask(ctx context.Context, object owned) {
	if wait, wanted := o.due(object); !wanted || wait > 0 {
		o.queue.Forget(object)
		if wanted {
			o.queue.AddAfter(object, wait)
		}
		return
	}
	above, err := controllerOf(ctx, o.client, object)
	switch {
	case ctx.Err() != nil:
	case err == nil:
		o.queue.Forget(object)
		o.learn(object, above)
	case o.fail(object, err):
		o.queue.Add(object) // which then waits until the resource is due
	default:
		o.queue.AddRateLimited(object)
	}
}

// due is when to ask for an object, if it is to be asked for at all. An object that went out of use
// and came back may be in the queue twice.
func (o *owners) due(object owned) (wait time.Duration, wanted bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, used := o.used[object.uid]
	if _, known := o.known.Load().Get(textKey(string(object.uid))); known || !used {
		return 0, false
	}
	if fault := o.health.faults[object.resource.GroupResource()]; fault != nil {
		wait = time.Until(fault.until)
	}
	return wait, true
}

// use notes that pods have this controller.
func (o *owners) use(object owned) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, used := o.used[object.uid]; used {
		return
	}
	o.used[object.uid] = object
	if above, ok := o.restored[object.uid]; ok {
		delete(o.restored, object.uid)
		o.setLocked(object.uid, above)
		return
	}
	o.queue.Add(object)
}

// drop notes that no pod has this controller any more.
func (o *owners) drop(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.used, uid)
	hash, key := textKey(string(uid))
	now, _, changed := o.writer().Delete(*o.known.Load(), hash, key)
	if changed {
		o.known.Store(&now)
		o.saveLocked()
	}
}

func (o *owners) learn(object owned, above *metav1.OwnerReference) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answeredLocked(object.resource.GroupResource())
	if _, used := o.used[object.uid]; !used {
		return
	}
	o.setLocked(object.uid, above)
	o.saveLocked()
}

func (o *owners) setLocked(uid types.UID, above *metav1.OwnerReference) {
	hash, key := textKey(string(uid))
	now, _, _ := o.writer().Set(*o.known.Load(), hash, key, above)
	o.known.Store(&now)
}

func (o *owners) writer() trie.Writer[string, *metav1.OwnerReference] {
	return trie.Writer[string, *metav1.OwnerReference]{Hash: trie.HashString, Owner: trie.NewOwner()}
}

// settle drops owners of the checkpoint that no pod uses: all sources have been read.
func (o *owners) settle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.restored) > 0 {
		o.restored = nil
		o.saveLocked()
	}
}
