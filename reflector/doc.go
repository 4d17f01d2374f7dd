// Package reflector keeps a store equal to a collection on a server.
//
//	pods := store.NewIndexer[*corev1.Pod]()
//	r := reflector.New(listwatch.FromClient[corev1.Pod](client, "pods"), pods)
//	go r.Run(ctx)
//	if err := r.WaitSynced(ctx); err != nil { … }
//
// # The protocol
//
// The reflector is a state machine (machine.go) and one loop that does what it says (run.go):
//
//	          +--------------------------- expired, copy in doubt, silent twice ------------------------+
//	          v                                                                                         |
//	start -> list --(complete)--> watch --(clean end, cut connection, 5xx, silence)--> watch from there-+
//	          |  ^                  |
//	          v  |                  v
//	         wait (backoff, Retry-After)            stop: ctx ended, or an error that was declared final
//
// A list is a watch that sends the state first (KEP-3157), or a LIST where the server refuses that, ignores it, or
// does not finish it within its budget; what the server was found to do is remembered as long as Run runs.
//
// # What is guaranteed
//
//  1. The store holds states that the server had; after a relist nothing is older than before.
//  2. Every change reaches the store once, in order. Across a gap the relist's difference stands in for it.
//  3. Nothing is silent: every end of a stream has a [Class], which [Status], the log and [Metrics] show. What could
//     not be decoded, or was refused by the store, is counted and healed by one relist, at most one a minute.
//  4. A connection over which nothing comes for the liveness period is given up and resumed.
//  5. When Run returns, everything that it started has ended.
//
// # What is not
//
// A store is as fresh as the last contact: ask [Status]. Requests wait for the rate limiter of the REST client.
package reflector
