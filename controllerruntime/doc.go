// Package controllerruntime keeps the objects of a controller-runtime program in Tributary's
// stores. One line changes:
//
//	mgr, err := ctrl.NewManager(config, ctrl.Options{NewCache: controllerruntime.NewCache})
//
// The program's reconcilers, sources, predicates, indexes, its client and all of its cache.Options
// stay as they are.
//
// # Gains
//
//  1. Memory: objects share the parts that are equal (package listwatch), and handlers have no
//     queues of their own (package informer).
//  2. A List is one instant of its collection, in several namespaces too. It has a resource version
//     up to which all of its namespaces are complete, so a watch from it loses nothing. Selectors
//     match before anything is copied. A field index is a part of the same snapshot.
//  3. The cache says how fresh it is: [Cache.Status] has the health of each collection, and
//     [Cache.Ready] is a check for mgr.AddReadyzCheck.
//
// # Read your own writes
//
// With [NewClient] a read through the cache shows the client's own writes, and waits for them if it
// must:
//
//	ctrl.Options{NewCache: controllerruntime.NewCache, NewClient: controllerruntime.NewClient}
//
// Waiting goes by resource versions, in any number of namespaces, and ends with the context of the
// read. It covers subresources, DeleteAllOf, and deletions that wait for finalizers, but no created
// subresource, such as an eviction. A read does not wait for an object that its write shows to be
// outside of the cache's namespaces and selectors. EnableReadYourWritesConsistency of
// controller-runtime's own client works with this cache too, but not with several namespaces, and
// refuses DeleteAllOf.
//
// # Reads that wait
//
// The first read of a kind waits for the kind's collection, as with controller-runtime's own cache.
// If the context ends first, the error has the class and the cause of the last failure:
//
//	/v1, Kind=Pod, typed: not synced: forbidden: list pods: pods is forbidden: … (9 attempts since …)
//
// A program can ask the error for more:
//
//   - The functions of apierrors, such as IsForbidden, know the server's answer. If there was none,
//     IsTimeout is true.
//   - If the server does not have the kind, the error is a meta.NoKindMatchError. IsNotFound is
//     false, since readers take that for a deleted object.
//   - After the end of Start, such a read fails at once with cache.ErrCacheNotStarted. A collection
//     that was synced can still be read.
//   - With [FailFast], 401, 403 and 404 are not waited for.
//   - WaitForCacheSync has no error to return, and logs it.
//
// # The bill and the guard
//
// A Get or List of a kind that nothing watches starts a collection of all its objects, as with
// controller-runtime's own cache. A line in the log says so, with the scope and the function that
// reads. A second line has the size, once the collection is synced:
//
//		A read starts a collection, which keeps all objects in the scope kind="/v1, Kind=Node, typed" scope="the cluster" read="get" caller="main.(*Remediation).Reconcile (remediation.go:88)"
//		A collection that a read has started is synced kind="/v1, Kind=Node, typed" objects=53513 receivedBytes=… took=…
//
//	  - [Cache.Bill] has the objects of each kind, their bytes on the wire, and the call that has
//	    started it. [Cache.Samples] has them as metrics: metrics.Track("cache", cache) of package
//	    prom.
//	  - [WarnAbove] logs a line if such a collection is large.
//	  - [RefuseAbove] makes such reads fail, before the objects are in memory.
//	    ReaderFailOnMissingInformer in cache.Options makes all of them fail.
//	  - [Lean] keeps what is read, and no more.
//
// # Lean kinds
//
// A program that reads 50 of 30,000 Secrets by name keeps 50, if Secrets are lean:
//
//	ctrl.Options{NewCache: controllerruntime.NewCacheWith(controllerruntime.Lean(&corev1.Secret{}))}
//
// Get reads a whole object by one request, and package refs follows it by a watch of its own. After
// five minutes without a Get ([LeanIdle]) the object is let go. The verbs list and watch for these
// resourceNames are enough. ByObject, selectors, namespaces, transforms and [NewClient] work as
// ever.
//
//   - Metadata is as ever too: a watch with builder.OnlyMetadata, and a List, a Get or an index of
//     metav1.PartialObjectMetadata have the metadata of all objects. A program that asks for none
//     keeps none.
//   - Get is never older than the metadata that the cache has, so a reconcile finds the state of
//     its event, or a later one. If the metadata lack an object, nothing is requested.
//   - Owns, Watches and For of a lean kind need builder.OnlyMetadata. GetInformer, List and
//     IndexField of whole objects fail with [ErrLean], which a controller logs when it starts.
//     EnableReadYourWritesConsistency of controller-runtime's own client needs an informer, and
//     fails so too.
//   - [NewReads] makes requests the owners of the objects that they read: an object is kept as long
//     as a request refers to it, and its change queues those requests alone.
//   - While the server is away, Get returns the last known state, as from a full cache. An error is
//     anything else that is not known: Get waits for the first state until its context ends, and a
//     missing right is an error at once, which apierrors.IsForbidden knows.
//   - [Cache.Status], [Cache.Ready] and WaitForCacheSync speak of collections, not of names.
//     ReaderFailOnMissingInformer does not concern a lean kind.
//
// Each name costs a watch. So a kind of which most objects are read within five minutes is cheaper
// without Lean.
//
// # Packed kinds
//
// A program that holds much and reads little of it keeps it as bytes (package store/packed):
//
//	ctrl.Options{NewCache: controllerruntime.NewCacheWith(controllerruntime.Packed(packed.Like, &corev1.Pod{}))}
//
// Its collections are as ever, with these differences:
//
//   - Get and List decode an object into one that is the reader's own, without a copy. A Get takes
//     about as long as the copy of a pod. A List decodes the objects of the namespace whose labels
//     match: labels are read off the bytes. To select 50 of 5,000 pods so takes 18 ms and 3 MB. By
//     a field index it decodes all objects under the value. UnsafeDisableDeepCopy saves nothing.
//   - Each handler decodes both objects of an event. A watch with builder.OnlyMetadata is a packed
//     collection of its own, of metadata.
//   - Two reads return two objects. A transform is called once, when an object comes.
//   - IndexField decodes each object that comes, and all of them if the cache has begun.
//   - Each of several namespaces packs its own objects: 50 namespaces of 100 pods take half as much
//     again as 5,000 pods of one. [OneWatch] packs them as one.
//   - Bytes are checked and not decoded as they come, but with [OneWatch], [FailFast],
//     [RefuseAbove] or a transform: those look at objects.
//
// # Differences from controller-runtime's own
//
//  1. Several namespaces are one collection with one stream of events. It is synced once all of its
//     namespaces are. Reads of one namespace wait for the others too. If namespaces have different
//     SyncPeriods, the shortest one holds for all of them. [OneWatch] reads them by one watch.
//  2. cache.TransformStripManagedFields is recognised, and the fields are skipped unread. Any other
//     transform gets a copy of each object and may modify it until it returns. The result shares
//     the parts that it left as they were. It must keep name, namespace, UID and resource version.
//  3. Another UID under a key is a deletion and an addition for handlers, not an update.
//  4. NewInformer in cache.Options contradicts this cache, and NewCache fails.
//  5. A field index gives an informer's AddIndexers no new index: IndexField is for reads through
//     the cache, AddIndexers for reads through a SharedIndexInformer.
//  6. Without EnableWatchBookmarks the cache lists before it watches. A watch over which nothing
//     comes is then renewed every few minutes, since bookmarks are a quiet server's sign of life.
//  7. A handler that is more than 1,024 changes behind is told the updates of an object as one. It
//     is told of each object that was created and deleted meanwhile.
//  8. A List by two fields of which the second has no index is an error that names it, also if no
//     object has the first: controller-runtime's list is empty then.
//
// # Cost
//
// The memory and the time of reads are in docs/makers/benchmarks.md, beside those of
// controller-runtime's own cache.
//
// How to move a program: docs/howto/from-controller-runtime.md.
package controllerruntime
