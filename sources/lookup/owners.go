package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/internal/signal"
	"github.com/tributary-go/tributary/internal/trie"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/internal/checkpoint"
)

// Owners has [Lookup.Owner] look above ReplicaSets and Jobs. The API server is asked once for the
// metadata of each ReplicaSet and Job that a pod of the node has as its controller. That of the
// newest pod comes first, and up to eight requests are under way. client is any REST client of a
// clientset, such as that of [sources.APIServer]. The requests do not wait for its rate limiter:
// they have one of their own, with the 50 requests a second of a kubelet. Without a client, Run of
// the sources fails.
//
// It needs the verb get of replicasets.apps and jobs.batch. With the verb list too, it finds the
// controller of an object that is gone: it lists the object as it was when its pod was written. The
// API server keeps some five minutes of its past. Beyond them, or without the verb, the owner stays
// unknown: see [Lookup.Guess].
//
// An owner is remembered as long as one of its pods, the time of [KeepEnded] included.
// [sources.Checkpoint] keeps it for a restart. A ReplicaSet or Job that is adopted later keeps its
// first owner.
//
// A request that fails is made again after a second, then ever later up to five minutes. If nothing
// of a resource is answered, one request is made at a time, at least every half minute. While the
// server forbids a resource, it is asked for one object every ten minutes. [sources.Sources.Status]
// then has the reason under the source "owners". That source is Seen while no owner is to be asked
// for, and no readiness waits for it.
func Owners(client rest.Interface) Option {
	return func(l *Lookup) { l.owners = newOwners(client) }
}

// Owner is the workload that a pod belongs to: the controller of its ReplicaSet or Job, or the
// pod's own controller if that is anything else, or has no controller. It is zero for a pod without
// a controller. While known is false, the API server has not told the controller of the ReplicaSet
// or Job, and owner is the ReplicaSet or Job itself. [Lookup.Guess] has the reason.
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
	above, known := l.owners.known.Load().Get(hashOf(controller.UID), controller.UID)
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
	version         string    // of a pod that has it, when it was first seen
	newest          time.Time // when the newest of these pods was created
}

// ownedBy is the controller of a pod, if the API server is to be asked for it.
func ownedBy(pod *corev1.Pod) (object owned, ok bool) {
	controller := metav1.GetControllerOfNoCopy(pod)
	if controller == nil || controller.UID == "" {
		return object, false
	}
	resource := resourceOf(controller)
	return owned{
		resource: resource, namespace: pod.Namespace, name: controller.Name, uid: controller.UID,
		version: pod.ResourceVersion, newest: pod.CreationTimestamp.Time,
	}, !resource.Empty()
}

// controllers has the controller of each object, by UID. An object that has none has nil.
type controllers = trie.Map[types.UID, *metav1.OwnerReference]

// owners asks the API server for the controllers of objects. Its users never wait for it.
type owners struct {
	asker asker
	pods  *sources.Sources
	known atomic.Pointer[controllers] // of objects in turns
	woken chan struct{}
	told  signal.Signal // an answer

	mu    sync.Mutex // guards the fields below
	log   logr.Logger
	saver *checkpoint.Saver[ownerState] // nil: no checkpoint
	turns turns
	// restored is of the checkpoint, and not in turns. It is nil once every source has been read.
	restored ownerState
	contact  time.Time // of the last answer
	errors   int
}

func newOwners(client rest.Interface) *owners {
	o := &owners{asker: newAsker(client), turns: newTurns(), woken: make(chan struct{}, 1)}
	o.known.Store(&controllers{})
	return o
}

// start restores the owners of the checkpoint, before any source runs. work asks for others until
// ctx ends.
func (o *owners) start(ctx context.Context) (work func(), err error) {
	if null.Is(o.asker.client) {
		return nil, fmt.Errorf("Owners was given no client (%T): a fake clientset of client-go has none", o.asker.client)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log = klog.FromContext(ctx).WithValues("source", ownersSource)
	if folder := o.pods.Checkpoints(); folder != "" {
		o.saver = checkpoint.NewSaver(checkpoint.In(folder, o.pods.Node(), "", ownerContent), o.log)
		o.restored = o.saver.Restore()
	}
	return func() { o.run(ctx) }, nil
}

func (o *owners) run(ctx context.Context) {
	if o.saver != nil {
		defer o.saver.Run()()
	}
	var all sync.WaitGroup
	defer all.Wait()
	synced, timer := o.pods.Synced(), time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		o.mu.Lock()
		next, wait := o.turns.next(time.Now())
		o.mu.Unlock()
		if next != nil {
			all.Go(func() {
				o.ask(ctx, next)
				o.wake()
			})
			continue
		}
		timer.Reset(wait)
		select {
		case <-synced:
			synced = nil
			o.settle()
		case <-o.woken:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// wake has run look for the next turn.
func (o *owners) wake() {
	select {
	case o.woken <- struct{}{}:
	default: // it has not looked since the last time
	}
}

func (o *owners) ask(ctx context.Context, one *turn) {
	o.mu.Lock()
	object := one.object // which other pods change meanwhile
	o.mu.Unlock()
	got, err := o.asker.controllerOf(ctx, object)
	if ctx.Err() != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.told.Broadcast()
	if err != nil {
		o.failedLocked(one, err)
		return
	}
	o.contact = time.Now()
	state := known
	if one.gone = got.gone; got.gone != nil {
		state = gone
	}
	if over := o.turns.answered(one, state); over != nil {
		o.log.Info("Problem is gone", "problem", over.Error())
	}
	if state == known && o.turns.objects[object.uid] == one {
		o.setLocked(object.uid, got.above)
		o.saveLocked()
	}
}

// use notes that pods have this controller.
func (o *owners) use(object owned) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one, isNew := o.turns.add(object)
	if !isNew {
		return
	}
	if above, ok := o.restored[object.uid]; ok {
		delete(o.restored, object.uid)
		one.state = known
		o.setLocked(object.uid, above)
		return
	}
	o.wake()
}

// drop notes that no pod has this controller any more.
func (o *owners) drop(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.turns.objects, uid) // a request that is under way ends its turn all the same
	now, _, changed := o.writer().Delete(*o.known.Load(), hashOf(uid), uid)
	if changed {
		o.known.Store(&now)
		o.saveLocked()
	}
}

func (o *owners) setLocked(uid types.UID, above *metav1.OwnerReference) {
	now, _, _ := o.writer().Set(*o.known.Load(), hashOf(uid), uid, above)
	o.known.Store(&now)
}

func (o *owners) writer() trie.Writer[types.UID, *metav1.OwnerReference] {
	return trie.Writer[types.UID, *metav1.OwnerReference]{Hash: hashOf, Owner: trie.NewOwner()}
}

func hashOf(uid types.UID) uint64 { return trie.HashString(string(uid)) }

// settle drops owners of the checkpoint that no pod uses: all sources have been read.
func (o *owners) settle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.restored) > 0 {
		o.restored = nil
		o.saveLocked()
	}
}

// ownersSource is the name of owners in Status.
const ownersSource = "owners"

// failedLocked notes a failure. Its problem has the class of the error, and neither its text nor a
// body.
func (o *owners) failedLocked(one *turn, err error) {
	resource, class := one.object.resource.GroupResource(), classOf(err)
	problem := fmt.Errorf("%s: cannot be read: %s", resource, strings.ReplaceAll(string(class), "_", " "))
	if class == reflector.Forbidden {
		problem = fmt.Errorf("%s: forbidden: the agent needs the verb get of it", resource)
	}
	problem = access.Mark(string(class), problem)
	if before := o.turns.resource(one.object).problem; before == nil || before.Error() != problem.Error() {
		o.log.Error(problem, "Problem")
	}
	o.errors++
	answer := pace.Failed
	switch class {
	case reflector.Forbidden:
		answer = pace.Refused
	case reflector.Unreachable:
		answer = pace.Absent
	}
	o.turns.failed(one, time.Now(), problem, answer, pace.RetryAfter(err))
}

// reason is why the controller of an object is not known.
func (o *owners) reason(object owned) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	one := o.turns.objects[object.uid]
	switch {
	case one == nil:
		return fmt.Errorf("%s %s/%s is of no pod of this node", object.resource.GroupResource(), object.namespace, object.name)
	case one.state == gone:
		return one.gone
	}
	if problem := o.turns.resource(object).problem; problem != nil {
		return problem
	}
	return fmt.Errorf("%s %s/%s: %w", object.resource.GroupResource(), object.namespace, object.name, errUnanswered)
}

// status is the health of the owners. Its problems are those of owners that are to be asked for.
func (o *owners) status() sources.Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := sources.Status{
		Source: ownersSource, Optional: true, Updates: map[sources.Op]int{},
		Report: sources.Report{Mode: "get by name", LastContact: o.contact, Errors: o.errors, Complete: true},
	}
	unknown := map[schema.GroupResource]int{}
	for _, one := range o.turns.objects {
		if one.state < known {
			unknown[one.object.resource.GroupResource()]++
		}
	}
	s.Seen = len(unknown) == 0
	byName := func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }
	for _, name := range slices.SortedFunc(maps.Keys(unknown), byName) {
		if of := o.turns.resources[name]; of != nil && of.problem != nil {
			s.Problems = append(s.Problems, fmt.Errorf("%w; the owners of %d are not known", of.problem, unknown[name]))
		}
	}
	if o.saver != nil {
		if err := o.saver.Problem(); err != nil {
			s.Problems = append(s.Problems, err)
		}
	}
	return s
}

// ownerState is the controllers of objects as a checkpoint has them, in JSON. An object that has
// none has nil.
type ownerState map[types.UID]*metav1.OwnerReference

var ownerContent = checkpoint.Content[ownerState]{
	Magic: "TRBOWNS\x02", Suffix: ".owners", Encode: func(state ownerState) ([]byte, error) { return json.Marshal(state) },
	Decode: func(body []byte) (state ownerState, err error) {
		if json.Unmarshal(body, &state) != nil {
			err = errors.New("its owners cannot be decoded")
		}
		return state, err
	},
}

// saveLocked offers all known controllers, and those of the checkpoint that may yet be used.
func (o *owners) saveLocked() {
	if o.saver == nil {
		return
	}
	state := ownerState{}
	maps.Copy(state, o.restored)
	for uid, above := range o.known.Load().All() {
		state[uid] = above
	}
	o.saver.Offer(state)
}

var errUnanswered = errors.New("the API server has not answered yet")

var errNotAsked = errors.New("the API server is not asked: give New the option Owners")

// Guess suggests a workload for a pod with an [Lookup.Owner] that is not known, and gives the
// reason why it is not known. If the owner is known, guess is zero and reason is nil. A guess comes
// from names alone. It has no UID, and it can be wrong: anyone can give a Job such a name. It is
// zero if the names suggest nothing.
//
// A ReplicaSet of a Deployment is named NAME-HASH, and its pods have the label pod-template-hash. A
// Job of a CronJob is named NAME-MINUTES, after the time at which it was due.
func (l *Lookup) Guess(pod *corev1.Pod) (guess metav1.OwnerReference, reason error) {
	if _, known := l.Owner(pod); known {
		return guess, nil
	}
	object, _ := ownedBy(pod)
	guess = guessOf(pod, object)
	if l.owners == nil {
		return guess, errNotAsked
	}
	return guess, l.owners.reason(object)
}

func guessOf(pod *corev1.Pod, object owned) (guess metav1.OwnerReference) {
	at := strings.LastIndexByte(object.name, '-')
	if at <= 0 {
		return guess
	}
	name, suffix := object.name[:at], object.name[at+1:]
	switch {
	case object.resource.Resource == "replicasets" && suffix != "" && suffix == pod.Labels["pod-template-hash"]:
		return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	case object.resource.Resource == "jobs" && isMinute(suffix, pod.CreationTimestamp.Time):
		return metav1.OwnerReference{APIVersion: "batch/v1", Kind: "CronJob", Name: name}
	}
	return guess
}

// isMinute reports whether a suffix is a time at which a Job of a pod may have been due, in minutes
// since 1970: in the year before the pod was created, or a little later by another clock.
func isMinute(suffix string, created time.Time) bool {
	minutes, err := strconv.ParseUint(suffix, 10, 32)
	if err != nil || suffix[0] == '0' || created.IsZero() {
		return false
	}
	age := created.Sub(time.Unix(int64(minutes)*60, 0))
	return -5*time.Minute < age && age < 366*24*time.Hour
}
