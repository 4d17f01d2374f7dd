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
//  2. Every change reaches the store once, in order. Across a gap the relist's difference stands in for it. An event whose
//     resource version does not fit those before it is judged by the object that the store holds: it is never a reason to
//     go back, is counted in [Status] as unplaced, and is settled by one relist.
//  3. Nothing is silent: every end of a stream has a [Class], which [Status], the log and [Metrics] show. What could
//     not be decoded or placed, or was refused by the store, is counted and healed by one relist, at most one a minute.
//  4. A connection over which nothing comes for the liveness period (twice that, before it has brought anything) is given up
//     and resumed.
//  5. When Run returns, everything that it started has ended.
//
// # Freshness
//
// [Status] has three times. LastContact says that the server lives and can be reached: a healthy one is heard about once a
// minute, by bookmarks if by nothing else. LastEvent says when the collection last changed, or was listed. LastProgress says
// when the resource version last moved, and is the only one that an API server cannot move by itself: the version comes
// from etcd, and counts the writes to all that the server stores, not to this collection alone.
//
// So a version that stands still while there is contact means one of two things, which a client cannot tell apart: nobody
// writes anything, or the server does not hear its etcd, and the copy may be stale. Where there are nodes, their leases are
// written all the time, and the second is the likely one as soon as the server should have told of a write. It sends a
// bookmark a minute; and etcd tells it of writes to other collections every 5 s where kubeadm has set it up, at the latest
// every 10 minutes by etcd's own default (--watch-progress-notify-interval). That gives the bound: [WithProgressWithin] of
// 3 minutes in the first case, 15 in the second, makes [Reflector.Ready] fail when it is crossed. No bound holds in a cluster
// without nodes, so there is none by default.
//
// # What is not
//
// Between two contacts the store may be behind without a sign. Requests wait for the rate limiter of the REST client.
package reflector
