// Package informer keeps a copy of a collection and tells typed handlers of its changes.
//
//	pods := informer.New(listwatch.FromClient[corev1.Pod](client, "pods"), informer.WithIndexes(byNode))
//	h, err := pods.AddHandler(func(e informer.Event[*corev1.Pod]) { queue.Add(e.Key) }, informer.WithName("scheduler"))
//	if err != nil { … }
//	ended := make(chan error, 1)
//	go func() { ended <- pods.Run(ctx) }()
//	if err := h.WaitSynced(ctx); err != nil { … }
//	…
//	for pod := range byNode.Objects(pods.Snapshot(), "node-1") { … }
//	…
//	return <-ended // Run's error; nil at the end of ctx
//
// A handler is a func([Event]). To loop instead, range over [Informer.Events]; [WithSynced] tells
// the loop when its initial list is complete. An event has the object before and after, and says
// whether it belongs to the handler's initial list. For a deletion it has the last state, never
// nil.
//
// # How it works
//
// All handlers share one ring of the informer's last changes. A handler has a position in the ring.
// While the handler keeps up, it reads events from the ring, without a snapshot. When the ring
// passes its position, the ring keeps the state at that position. The handler is then told the
// difference between that state and the present one. There is no queue per handler.
//
// # Guarantees
//
//  1. A handler is called on one goroutine of its own, one event at a time. No handler waits for
//     another, and the store waits for none.
//  2. First comes the state at which the handler begins, each object as Added and Initial: that of
//     its addition, or the first whole state if there was none yet. The events after it lead to the
//     store's present state, and nothing is lost. For each key, every event begins where the last
//     one ended.
//  3. A handler that is less than a ring behind ([WithRing]) is told every change that the watch
//     brought, in the server's order over all objects. That includes the final state of a deletion.
//  4. A handler that falls further behind is told the difference per object, in no order between
//     objects: updates are merged, but lives are not. An object created meanwhile is told as Added
//     once, and an object deleted meanwhile as Deleted once; per key, in the order it happened. The
//     cost is the memory of the handler's snapshot, at most the collection once more, and of the
//     deletions since, which all handlers share: the last 16 rings of them. Objects that were
//     created and deleted before those are not told; [HandlerStatus] counts such a difference as
//     Incomplete, and the log says it once.
//  5. An object that was deleted and created again under its key is Deleted and Added, even if no
//     watch saw the deletion. An event of a difference, after a relist or by falling behind, is
//     marked Missed. A deletion that the server told is marked Final, and has the final state.
//  6. [Handler.Remove] returns after the handler has returned for the last time, and Run after
//     everything that it started has ended.
//  7. A handler's panic is logged at once and ends Run with an error that names the handler; with
//     [WithIsolation] it ends that handler alone.
//  8. A copy is right, or says that it is not. Ready, Status, metrics and the status page give one
//     verdict ([reflector.Status.Verdict]). A copy is not right before Run and once Run has ended,
//     could not begin, or is bound to end for a panic: all of them say so at once, also while
//     another handler still blocks.
//  9. A difference that [Informer.Verify] finds makes the copy not right, until the relist that
//     follows by itself.
//
// # Read your own writes
//
// [Informer.WaitFor], [Informer.WaitForDeletion] and [Informer.WaitForResourceVersion] block until
// the store has the result of a write, by comparing resource versions (KEP-5504).
// [Informer.WaitUntil] blocks until an object satisfies a condition.
//
// # Sharing
//
// A [Set] shares informers within a process. [Acquire] gives a [Lease] on a collection, and all
// leases of one object type, resource and scope share one copy and one watch. A lease's handlers
// end with it. The last Close of a copy ends its watch and frees it. If one copy fails, the others
// go on.
//
// A [Union] keeps several parts of one resource, such as some namespaces, as one collection. Its
// members come and go.
//
// # Objects at rest
//
// [WithStore] keeps the objects as packed bytes, a tenth of the memory or less (package
// store/packed):
//
//	pods := informer.New(source, informer.WithStore(packed.New[corev1.Pod]))
//
// All of the above holds, with these differences:
//
//   - Two reads may return two pointers for one state: compare UID and resource version. A read
//     allocates, and takes tens of microseconds for a pod, unless [Informer.Get] has read the
//     object lately.
//   - A handler of [Informer.AddHandler], and a loop over Events, get both objects of an event
//     decoded, for each handler anew. [Informer.AddMetaHandler] has the key and the metadata, and
//     decodes an object that the handler opens.
//   - The ring and a handler that is behind keep bytes, and no objects.
//   - An index with a function decodes each object that comes. If it is added while the informer
//     runs, it decodes all objects once. An index of a label or a field ([store.ByField]) reads
//     that alone.
//   - [Informer.Verify] and [Informer.WaitUntil] decode what they compare.
//   - The members of a [Union] pack each for itself. An object that two members have is decoded to
//     be compared.
//
// Without the option nothing of it is linked.
//
// # Further packages
//
// Package join shows several collections at one instant. Package
// [github.com/tributary-go/tributary/controller] calls a function for each key that a change
// concerns.
//
// # Limits
//
// There is no resync. Other libraries mean one of two things by that word: [WithRedelivery], which
// asks the server nothing, and [Informer.Verify], which asks the server. Handlers have no order
// among each other. Objects are shared with the store and all handlers: they are read-only.
//
// The verdict is of the copy, and not of its readers. A handler that hangs shows in its [Lag],
// which counts from the start of its initial list.
//
// # Cost
//
// The ring grows with the changes that some handler has not read yet: 1024 take 88 KB. It keeps an
// old object alive until every handler has read the change, and keeps nothing of a deleted object
// after that. A handler takes a goroutine, and up to 48 KB for the events that it reads at once.
// Telling a handler of an event allocates nothing, and telling one more handler takes less than 0.1
// µs.
//
// A handler that keeps up leaves 3 MB on the heap beyond the collection, after 200,000 events over
// 10,000 pods that share no memory. A handler that sleeps through them leaves 34 MB. With
// client-go's informer the two leave nothing and 626 MB.
//
// The store changes in place while no snapshot exists. So a handler should take its object from the
// event. A program that reads single objects now and then should take few snapshots. The tables of
// bench that begin with "informers" measure this.
//
// How to use it: docs/tutorial.md, docs/howto/own-writes.md, docs/howto/namespaces-and-clusters.md.
package informer
