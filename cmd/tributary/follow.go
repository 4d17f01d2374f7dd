package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/crd"
)

// follower serves the custom resources whose definitions etcd has, while definitions come, change
// and leave. Several programs may follow one etcd: each serves all, and whoever is first writes the
// status of a definition and deletes the objects of one that ends.
type follower struct {
	site  *site
	only  map[string]bool // names of definitions; nil: all
	queue workqueue.TypedRateLimitingInterface[string]
	ended sync.WaitGroup // collections

	mu     sync.Mutex // guards served, which the worker alone writes
	served map[string]*customResource
}

// customResource has the served versions of a definition.
type customResource struct {
	uid        types.UID
	generation int64
	names      apiextensionsv1.CustomResourceDefinitionNames
	versions   []running
	stop       context.CancelFunc
	ending     atomic.Bool // nothing is created any more
}

const (
	worker       = "kube-apiserver" // the field manager of statuses, as there
	removalPause = time.Second      // between two looks at objects that finalizers hold
	rewatchPause = time.Second
	firstRetry   = 100 * time.Millisecond
	longestRetry = 30 * time.Second
	syncPatience = 30 * time.Second // for the first list of a custom resource
	// farewell is how long a collection goes on that is served no more: a request that found it
	// may wait for its storage. kube-apiserver counts such requests, and waits two minutes at most.
	farewell = time.Minute
)

func newFollower(s *site, only map[string]bool) *follower {
	return &follower{
		site: s, only: only, served: map[string]*customResource{},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, longestRetry)),
	}
}

// settle serves the definitions that there are. The collection of definitions has been listed.
func (f *follower) settle(ctx context.Context) {
	for name := range f.site.definitions.Snapshot().All() {
		f.work(ctx, name)
	}
}

// run follows the definitions until ctx ends, and returns when all collections have ended.
func (f *follower) run(ctx context.Context) {
	defer f.ended.Wait()
	f.ended.Go(func() {
		for name, down := f.queue.Get(); !down; name, down = f.queue.Get() {
			f.work(ctx, name)
			f.queue.Done(name)
		}
	})
	defer f.queue.ShutDown()
	for ctx.Err() == nil {
		f.mu.Lock()
		for name := range f.served { // a deletion may have been missed
			f.queue.Add(name)
		}
		f.mu.Unlock()
		for e, err := range f.site.definitions.Watch(ctx, metav1.ListOptions{}) {
			if err != nil {
				break
			}
			f.queue.Add(e.Object.Name)
			if e.Type != watch.Added {
				f.reconsider(e.Object) // it may have given a name back
			}
		}
		pace.Sleep(ctx, rewatchPause)
	}
}

// reconsider looks again at the definitions of a group that have not been given their names.
func (f *follower) reconsider(changed *definition) {
	for name, d := range f.site.definitions.Snapshot().All() {
		if d.Spec.Group == changed.Spec.Group && apihelpers.IsCRDConditionFalse(d, apiextensionsv1.NamesAccepted) {
			f.queue.Add(name)
		}
	}
}

// work acts on the state of a definition, and comes back to it after an error.
func (f *follower) work(ctx context.Context, name string) {
	again, err := f.reconcile(ctx, name)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		klog.FromContext(ctx).Error(err, "a definition could not be followed", "definition", name)
		f.queue.AddRateLimited(name)
	case again:
		f.queue.AddAfter(name, removalPause)
	default:
		f.queue.Forget(name)
	}
}

func (f *follower) reconcile(ctx context.Context, name string) (again bool, err error) {
	d, found := f.site.definitions.Snapshot().Get(name)
	if !found {
		f.leave(name)
		return false, nil
	}
	if f.only != nil && !f.only[name] {
		return false, nil
	}
	established := apihelpers.IsCRDConditionTrue(d, apiextensionsv1.Established)
	switch {
	case f.site.readOnly && !established:
		return false, nil
	case f.site.readOnly:
		return false, f.serve(ctx, d)
	case d.DeletionTimestamp != nil && apihelpers.CRDHasFinalizer(d, apiextensionsv1.CustomResourceCleanupFinalizer):
		return f.end(ctx, d)
	}
	next := crd.Accept(d, f.site.definitions.Snapshot().Sorted())
	if !established && apihelpers.IsCRDConditionFalse(next, apiextensionsv1.NamesAccepted) {
		return false, f.write(d, next)
	}
	if err = f.serve(ctx, next); err == nil {
		crd.SetCondition(next, apiextensionsv1.Established, true, "InitialNamesAccepted", "the initial names have been accepted")
	} else if !established {
		crd.SetCondition(next, apiextensionsv1.Established, false, "NotServed", err.Error())
	}
	return false, errors.Join(err, f.write(d, next))
}

// write stores the status and the finalizers of a definition. If somebody else was faster, an event
// will bring the definition back.
func (f *follower) write(d, next *definition) error {
	if apiequality.Semantic.DeepEqual(d.Status, next.Status) && slices.Equal(d.Finalizers, next.Finalizers) {
		return nil
	}
	_, err := f.site.definitions.As(worker).UpdateStatus(next)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// serve has the versions of a definition served as it says now. Present versions are served until
// the new ones are complete; their watches end then.
func (f *follower) serve(ctx context.Context, d *definition) (err error) {
	present := f.served[d.Name]
	if present != nil && present.uid == d.UID && present.generation == d.Generation &&
		apiequality.Semantic.DeepEqual(present.names, d.Status.AcceptedNames) {
		return nil
	}
	next := &customResource{uid: d.UID, generation: d.Generation, names: d.Status.AcceptedNames}
	ctx, next.stop = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			next.stop()
		}
	}()
	next.ending.Store(d.DeletionTimestamp != nil)
	named := d.DeepCopy()
	named.Spec.Names = d.Status.AcceptedNames
	versions, err := crd.Versions(named)
	if err != nil {
		return err
	}
	for _, v := range versions {
		v.Resource.Rules.Create = next.admit
		r := custom(v)
		if f.site.server.Serves(r.GroupVersionResource) && !present.has(r.GroupVersionResource) {
			return fmt.Errorf("%s is served already", r.GroupVersionResource)
		}
		made, err := r.add(f.site, r)
		if err != nil {
			return err
		}
		next.versions = append(next.versions, made)
		f.ended.Go(func() { _ = made.collection.Run(ctx) }) // its Status has the errors
	}
	within, cancel := context.WithTimeout(ctx, syncPatience)
	defer cancel()
	for _, made := range next.versions {
		if err := made.collection.WaitSynced(within); err != nil {
			return fmt.Errorf("list %s: %w", made.name(), err)
		}
	}
	for _, made := range next.versions {
		made.serve(apiserver.Replacing())
	}
	f.drop(present, next)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.served[d.Name] = next
	return nil
}

// has reports whether a version is served.
func (c *customResource) has(version schema.GroupVersionResource) bool {
	return c != nil && slices.ContainsFunc(c.versions, func(r running) bool { return r.GroupVersionResource == version })
}

// drop stops the versions that the next one does not serve.
func (f *follower) drop(present, next *customResource) {
	if present == nil {
		return
	}
	for _, r := range present.versions {
		if !next.has(r.GroupVersionResource) {
			f.site.server.Remove(r.GroupVersionResource)
		}
	}
	// Its cache is not closed at all: requests under way may still read it.
	time.AfterFunc(farewell, present.stop)
}

// close closes all collections, which nothing serves or runs any more.
func (f *follower) close() {
	for _, r := range f.site.running {
		r.collection.Close()
	}
	for _, present := range f.served {
		for _, r := range present.versions {
			r.collection.Close()
		}
	}
}

// leave stops to serve the resource of a definition that is gone.
func (f *follower) leave(name string) {
	present := f.served[name]
	if present == nil {
		return
	}
	f.drop(present, nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.served, name)
}

// end deletes the objects of a definition, and then lets the definition go. Again: objects are left
// that their finalizers hold.
func (f *follower) end(ctx context.Context, d *definition) (again bool, err error) {
	next := d.DeepCopy()
	terminating := func(holds bool, reason, message string) error {
		crd.SetCondition(next, apiextensionsv1.Terminating, holds, reason, message)
		if !holds {
			apihelpers.CRDRemoveFinalizer(next, apiextensionsv1.CustomResourceCleanupFinalizer)
		}
		return f.write(d, next)
	}
	if !apihelpers.IsCRDConditionTrue(d, apiextensionsv1.Established) {
		return false, terminating(false, "NeverEstablished", "resource was never established")
	}
	pending := apihelpers.FindCRDCondition(d, apiextensionsv1.Terminating)
	if pending == nil || pending.Reason == "InstanceDeletionPending" {
		return false, terminating(true, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	}
	if err = f.serve(ctx, d); err == nil { // after a restart it is not served yet
		present := f.served[d.Name]
		present.ending.Store(true)
		again, err = present.versions[0].clear(ctx)
	}
	switch {
	case err != nil:
		return false, errors.Join(err, terminating(true, "InstanceDeletionFailed", "could not delete all instances: "+err.Error()))
	case again:
		return true, nil
	}
	return false, terminating(false, "InstanceDeletionCompleted", "removed all instances")
}

// admit refuses new objects of a definition that ends.
func (c *customResource) admit(obj *unstructured.Unstructured) error {
	if !c.ending.Load() {
		return nil
	}
	return apierrors.NewForbidden(c.versions[0].GroupResource(), obj.GetName(),
		errors.New("create not allowed while custom resource definition is terminating"))
}
