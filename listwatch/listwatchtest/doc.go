// Package listwatchtest is a fake API server for unit tests: collections that are listed and watched as on a real one,
// and that fail when a test says so.
//
//	pods := listwatchtest.New(t, watchcache.Pods())
//	r := reflector.New(pods.ListerWatcher(), st) // or clientset code, with pods.Server().Config()
//	…
//	pods.Create(&corev1.Pod{ … })
//	pods.Disconnect()                            // and whatever else can happen on a network
//	pods.Server().AwaitWatches(1)                // the code under test is back
//
// # Two doors
//
// [Server.Config] is a rest.Config whose connections are made of memory: any client made from it, a clientset too, runs
// inside a testing/synctest bubble, where minutes of backoff take no time. [Collection.ListerWatcher] is a reflector's
// source through that door. [Server.Listen] and [Server.Kubeconfig] are the door over HTTP: for kubectl, and for programs that
// are started apart. Behind both there is one handler: requests are encoded, logged, met by faults and decoded alike.
//
// # Faults
//
// Faults are methods of a [Collection]: Disconnect, Expire, Mute, Fail, Throttle, Truncate, Delay, Stale, NoWatchList.
// Each strikes once, [Times] n, or [UntilLifted]; lists and watches, or the verbs that [On] names. [Fault.Wait],
// [Server.AwaitRequests] and [Server.AwaitWatches] block until something has happened, so that no test needs to sleep.
//
// # Histories
//
// [CheckHistory] judges what a reader was told: whether it is ordered, unique, atomic, reliable,
// resumable and bookmarkable, as etcd defines these. [RecordSource], [RecordStore] and
// [RecordHandler] record a reader at three places: what its source gave it, what a reflector wrote
// into its store, and what an event handler got, of client-go's informers too.
// [Collection.Changes] has what was written. The module e2e/robustness compares the verdicts with
// those of etcd's own validators.
//
// # What is guaranteed
//
//  1. Writes obey the API server's rules for resource versions, UIDs, generations, conflicts, finalizers and graceful
//     deletion: those of [collection.Collection].
//  2. Lists and watches keep the promises of package watchcache: selectors, exact and not-older-than versions, pages
//     of one state, watch lists, bookmarks, a bounded window, and the API server's errors where it would answer
//     with them. [Conform] checks them on this fake through both doors, and on a real server.
//  3. A fault strikes at the moment of the call what is under way, all at once; otherwise the next request that it can
//     strike, exactly as often as it was told to. What was struck is what a network or a server does: bytes that stop
//     coming, a connection that ends early, a Status. No error is made up in the client.
//  4. What a client has been given is its own: nothing is shared with the fake, so that code which modifies what it
//     reads spoils no other client's copy. Where it read through [Collection.ListerWatcher], it fails the test.
//  5. Nothing is left running: what a request has started has ended when its body is closed, all else with the test.
//
// # What is not
//
// What package watchcache does not model, this fake does not have: admission, defaulting, validation beyond names,
// conversion, authentication, RBAC (say Fail(List, apierrors.NewForbidden(…)) for what it looks like), quota, priority and
// fairness (Throttle is its look), garbage collection, OpenAPI, dry runs, subresources but status.
// Namespaces need not exist. The kubelet does not run: a bound pod that is deleted stays, marked, until
// [Collection.Remove].
//
// Nor is there: a connection that is refused before it stands; TLS, HTTP/2 and proxies; compressed answers; an object
// that cannot be decoded; a server that ignores sendInitialEvents, as those before 1.27 do, in place of refusing it.
//
// # Beside a real server
//
// All rows of [Conform] pass on kube-apiserver 1.36.3 with etcd 3.6.8 too, in protobuf and in JSON, none skipped. What a real
// server does otherwise, and no row compares:
//
//   - Lists and watches at version 0, and those that are not older than a version, come from its cache, which may be a moment
//     behind a write that it has just acknowledged. This fake shows every write at once, but under [Collection.Stale].
//   - It sends no bookmark that is not newer than the version at which the watch began, but for the one that ends the initial
//     events. This fake sends them all.
//
// # Cost
//
// A request through memory costs a goroutine and the encoding of what is read: 20 µs for a small pod
// (BenchmarkListThroughMemory). A fault costs a look under one lock per request and event.
package listwatchtest
