// Package reflector keeps a store equal to a collection on a server.
//
//	pods := store.NewIndexer[*corev1.Pod]()
//	r := reflector.New(listwatch.FromClient[corev1.Pod](client, "pods"), pods)
//	ended := make(chan error, 1)
//	go func() { ended <- r.Run(ctx) }()
//	if err := r.WaitSynced(ctx); err != nil { … }
//
// # The protocol
//
// The reflector is a state machine (machine.go) and one loop that makes its requests (run.go):
//
//	          +---- expired, copy in doubt, silent twice, no watch ----+
//	          v                                                        |
//	start -> list --(complete)--> watch --(clean end, cut, 5xx)--> watch from there
//	          |  ^                  |  ^
//	          v  |                  v  |
//	         wait (backoff,        wait (at once after       stop: ctx ended, or a final error
//	         Retry-After)          a watch that lived)
//
// A list is a watch that sends the state first (KEP-3157). When it fails, a LIST follows at once,
// but not after a 429, a refused connection, a 410 or a version that the server does not have. The
// next watch list is tried after a minute, then two, up to an hour.
// KUBE_FEATURE_WatchListClient=false turns watch lists off, as in client-go.
//
// The first state is the server's newest: an API server that is cut off from its etcd cannot answer
// such a list, and the reflector is not synced until it can. A store that holds something when Run
// begins, such as a checkpoint, keeps it until then. [WithCachedFirstList] and [WithResume] begin
// with a state that may be old, and [Status] says so until it is proven.
//
// If watches are refused, or fail again and again, lists alone keep the copy, at the backoff's
// pace. [Status] goes on showing the error. Refused rights are tried again every 4 to 4.75 s.
//
// Beside the watch a prober asks for the server's version every minute, by the name of one object
// (probe.go). 5 to 14 s after an interruption it begins to compare all objects with the server's
// metadata (inspect.go). Its answers prove the copy, see Freshness, or contradict it: [WentBack],
// [History], [Drift]. Each contradiction costs one relist, at most one a minute. Until that has
// been read, the copy is not right.
//
// # Guarantees
//
//  1. The store holds states that the server had; after a relist nothing is older than before,
//     unless two answers agree that the server's own version is older: its etcd was restored from a
//     backup. A list without a version is no state of a server that has versions. A list of fewer
//     than half of the objects held, at a version that is not newer, needs a second answer.
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
//  7. A copy that is not right says so: see [Verdict].
//
// # Freshness
//
// Contact is no freshness: a slow link, a buffering proxy, and a server without its etcd bring old
// news, and bookmarks too. A copy is proven instead. A consistent answer of the server, asked for
// at a moment T, names a version, and when the copy reaches that version it has all that was
// written before T. [Status].ProvenAt is T. A probe is such an answer, and so is each list at the
// latest version.
//
// The proof of a healthy copy is up to two minutes old, since a quiet collection reaches a version
// by the server's next bookmark. So 3 minutes is a good bound for [Reflector.Ready]. Copies of one
// resource over one client share the probes, and each asks for itself every 15 minutes.
//
// An interrupted copy is [CatchingUp] until a proof is younger than the interruption, and the
// content was compared since. Ready does not wait for that while an older proof is within its
// bound; what deletes by the copy must, as sources.SafeToPrune does.
//
// If a server sends no bookmarks, and its version moves elsewhere, no watch can reach the version:
// a list is made after two probes, as long as lists take no more than a fiftieth of the time. A
// source without versions is proven by each answer.
//
// Between two proofs the store may be behind without a sign. The REST client's rate limiter (QPS,
// Burst) delays lists and probes, and no watch; Status shows a list that waits ([ClientThrottled]).
//
// How to find a stale copy: docs/howto/stale-copy.md; each class: docs/reference/classes.md.
package reflector
