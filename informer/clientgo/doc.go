// Package clientgo adapts informers and stores to code that was written for client-go's
// tools/cache: generated listers, factories of k8s.io/client-go/informers, controller-runtime,
// workqueues.
//
//	pods := informer.New(listwatch.FromClient[corev1.Pod](client, "pods"))
//	lister := listers.NewPodLister(clientgo.Indexer(pods))     // k8s.io/client-go/listers/core/v1
//	shared := clientgo.Informer(pods)                          // a cache.SharedIndexInformer
//
// [NewInformer] has the signature of cache.NewSharedIndexInformer. It is for code that makes its
// informers itself and accepts a constructor.
//
//	cache.Options{NewInformer: clientgo.NewInformer}           // sigs.k8s.io/controller-runtime/pkg/cache
//
// Packages informers, dynamicinformer and metadatainformer, below this one, have client-go's shared
// informer factories. [Factory] adapts a factory generated for custom resources.
//
// [NewReflector], [New], [NewInformerWithOptions] and [NewSharedIndexInformerWithOptions] have the
// signatures of the functions of these names in package cache.
//
// # Untyped parts
//
// Those interfaces speak of any, and so do two files of this package. An object of another type
// than the store's is an error at run time there. Your own code does not need it: snapshots and
// events are typed.
//
// # Differences from client-go's own
//
//  1. A query of an index sees the newest snapshot, and first updates the index to it. So the next
//     query pays for a change, and an unused index costs nothing. Each index holds the snapshot of
//     its last query, at most the collection once more.
//  2. Another UID under a key is OnDelete and OnAdd. In client-go it is an OnUpdate.
//  3. A deletion inferred from a relist is a cache.DeletedFinalStateUnknown with the last state
//     seen, as in client-go. Its Obj is never nil. A handler that falls behind is told each object
//     that lived by OnAdd and OnDelete, but not each update; see package informer for the bound.
//  4. GetStore and GetIndexer can be written at any time, as tests do. As in client-go, a key's
//     next event and the next list override a write. But the informer never sees it. The key's
//     next event has the server's state as the old one, and a list removes a written object
//     without OnDelete. An indexer made of a [store.Store] writes into that store.
//  5. A handler that panics ends the process by way of Run, as in client-go: Run panics with the
//     handler's value at once, without waiting for other handlers. The handler's name and stack are
//     logged before. If the informer is run by its own Run instead, that Run returns an
//     *[informer.PanicError]. Without runtime.ReallyCrash the panic is logged, and the handler goes
//     on with its next event after a second.
//  6. If a transform makes nil of an object, the copy does not have it, and the copy is right; if
//     that object was held, it is told as deleted in its untransformed state. If a transform fails,
//     that object is unusable, and the others are kept. In client-go, either one in a list leaves
//     the informer without any object of the list. No transform gets a tombstone.
//
// As in client-go, an object without a name is kept under the key "namespace/": fake clientsets
// ignore generateName. The rest of this library refuses such objects.
//
// # Calls that fail or do nothing
//
// SetWatchErrorHandler, SetWatchErrorHandlerWithContext and SetTransform need the source, so they
// fail on an informer that is already made, and name a replacement. A watch error handler gets a
// real *cache.Reflector that is idle: it has a name and a type for the log. It hears of failed
// lists and refused watches, but not of errors that are retried anyway: see [WithWatchErrors].
// SetShardSelector, of client-go 0.38, panics there, since generated factories drop its error. It
// keeps one shard of what the server sends; the server still sends all. The factories' option
// WithShardSelector, and [listwatch.Shard], ask the server for the shard.
// HandlerOptions.Logger logs a panic that runtime.ReallyCrash lets pass, and nothing else.
// To run the controller of GetController does nothing: [NewIndexerInformer] returns one that runs.
//
// How to move a program: docs/howto/from-client-go.md.
package clientgo
