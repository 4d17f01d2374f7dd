// Package clientgo lends informers and stores to code that was written for client-go's tools/cache:
// generated listers, factories of k8s.io/client-go/informers, controller-runtime, workqueues.
//
//	pods := informer.New(listwatch.FromClient[corev1.Pod](client, "pods"))
//	lister := listers.NewPodLister(clientgo.Indexer(pods))     // k8s.io/client-go/listers/core/v1
//	shared := clientgo.Informer(pods)                          // a cache.SharedIndexInformer
//	pods.AddHandler(clientgo.Enqueue(queue, func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} }))
//
// [NewInformer] is for code that makes its informers itself and lets one say how: it has the
// signature of cache.NewSharedIndexInformer.
//
//	cache.Options{NewInformer: clientgo.NewInformer}           // sigs.k8s.io/controller-runtime/pkg/cache
//
// # What is untyped
//
// Those interfaces speak of any, and one file here does too: an object of another type than the
// store's is an error there, which a compiler would have found elsewhere. Code of one's own has no
// need of it: snapshots and events are typed.
//
// # What is different from client-go's own
//
//  1. A query of an index sees the newest snapshot, and first brings the index up to it: the cost
//     of a change is paid by the next query, and an index that nobody queries costs nothing more.
//     Each index remembers the snapshot of its last query, at most the collection once more.
//  2. Another UID under a key is OnDelete and OnAdd. There it is an OnUpdate.
//  3. A deletion that was inferred from a relist, or because the handler fell behind, comes as
//     cache.DeletedFinalStateUnknown with the last state seen, as there; its Obj is never nil.
//  4. An informer's store is read-only, and so are the indexers made of it: writing fails. An
//     indexer made of a [store.Store] writes into that.
//  5. A handler that panics ends the process by way of Run, as there, unless the informer is run by
//     its own Run, which returns the panic as an error. The panic is an *[informer.PanicError],
//     which wraps the handler's value and names the handler. runtime.ReallyCrash is not asked.
//  6. RemoveEventHandler fails if the handler is another informer's. There it does nothing.
//
// # What cannot be honoured
//
// SetWatchErrorHandler and its sibling take a *cache.Reflector, and there is none: they fail, as
// SetTransform does on an informer that is already made, and say what to use in their place.
// HandlerOptions.Logger has no effect: handlers log nothing. GetController returns the informer
// itself.
package clientgo
