// Package reflector keeps a store equal to a collection on a server.
//
//	pods := store.NewIndexer[*corev1.Pod]()
//	r := reflector.New(listwatch.FromClient[corev1.Pod](client, "pods"), pods)
//	go r.Run(ctx)
//	if err := r.WaitSynced(ctx); err != nil { … }
//
// # The protocol
//
// The reflector is a state machine (machine.go) and one loop that makes its requests (run.go):
//
//	          +------- expired, copy in doubt, silent twice, the server went back in time, no watch -----+
//	          v                                                                                         |
//	start -> list --(complete)--> watch --(clean end, cut connection, 5xx, silence)--> watch from there-+
//	          |  ^                  |  ^                                                                |
//	          v  |                  v  |                                                                |
//	         wait (backoff,        wait (at once after       probe <--(nothing came since the resumption)-+
//	         Retry-After)          a watch that lived)       stop: ctx ended, or a final error
//
// A list is a watch that sends the state first (KEP-3157). When it fails, a LIST follows at once.
// Exceptions are a 429, a refused connection, a 410 and a version that the server does not have.
// The next watch list is tried after a minute, then two, up to an hour.
// KUBE_FEATURE_WatchListClient=false turns watch lists off, as in client-go.
//
// The first state is the server's newest: an API server that is cut off from its etcd cannot answer
// such a list, and the reflector is not synced until it can. A store that holds something when Run
// begins, such as a checkpoint, keeps it until then. [WithCachedFirstList] takes the state of the
// server's cache, and [Status] says that it may be old.
//
// If watches are refused, or fail again and again, lists alone keep the copy, at the backoff's
// pace. [Status] goes on showing the error. Refused rights are tried again every 4 to 4.75 s.
//
// A watch that resumes after an interruption, and brings nothing for 5 to 15 s, is ended for a
// probe: a LIST of one object, which tells the server's newest version. A version older than ours
// means that etcd was restored from a backup: the older state is taken. If the restored history has
// passed our version by then, a client cannot see it: a watch goes on as if nothing had happened.
// Then informer.Verify finds what differs; programs that must know call it on a schedule.
//
// # Guarantees
//
//  1. The store holds states that the server had; after a relist nothing is older than before,
//     unless two answers agree that the server's own version is older: its etcd was restored from a
//     backup.
//  2. Every change reaches the store once, in order. Across a gap the relist's difference stands in
//     for it. An event with a resource version that does not fit those before it is judged by the
//     object that the store holds: it is never a reason to go back, is counted in [Status] as
//     unplaced, and is settled by one relist.
//  3. Nothing is silent: every end of a stream has a [Class], which [Status], the log and [Metrics]
//     show. An object that cannot be decoded or placed, or that the store refuses, is counted and
//     healed by one relist, at most one a minute.
//  4. A connection over which nothing comes for the liveness period (twice that, before it has
//     brought anything) is given up and resumed.
//  5. A server's Retry-After is obeyed, up to five minutes. [Status] says until when, and why.
//  6. When Run returns, everything that it started has ended.
//
// # Freshness
//
// [Status] has three times. LastContact says that the server lives and can be reached: a healthy
// server sends something about once a minute, a bookmark at least. LastEvent says when the
// collection last changed, or was listed. LastProgress says when the resource version last moved,
// and is the only one that an API server cannot move by itself: the version comes from etcd, and
// counts the writes to all that the server stores, not to this collection alone.
//
// A version that stands still during contact has one of two causes: nothing is written, or the
// server is cut off from its etcd. In the second case the copy may be stale. A client cannot tell
// the two apart. In a cluster with nodes, their leases are written all the time, so the second is
// likely once the server should have reported a write. The server sends a bookmark a minute. etcd
// tells the server of writes to other collections, by its flag --watch-progress-notify-interval:
// every 5 s under kubeadm, every 10 minutes by default. That gives the bound: [WithProgressWithin]
// of 3 minutes in the first case, 15 in the second, makes [Reflector.Ready] fail when it is
// crossed. No bound holds in a cluster without nodes, so there is none by default.
//
// # Limits
//
// Between two contacts the store may be behind without a sign. The REST client's rate limiter (QPS,
// Burst) delays lists and the requests for proofs; no watch waits for it. Status shows a list that
// waits ([ClientThrottled]).
package reflector
