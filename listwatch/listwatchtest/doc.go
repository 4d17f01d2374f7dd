// Package listwatchtest is a fake API server for unit tests. Its collections are listed and watched
// as on a real server, and fail when a test says so.
//
//	pods := listwatchtest.New(t, listwatchtest.Pods())
//	r := reflector.New(pods.ListerWatcher(), st) // or clientset code, with pods.Server().Config()
//	…
//	pods.Create(&corev1.Pod{ … })
//	pods.Disconnect()                            // and whatever else can happen on a network
//	pods.Server().AwaitWatches(1)                // the code under test is back
//
// # Two doors
//
// [Server.Config] is a rest.Config with connections made of memory. Any client made from it, a
// clientset too, runs inside a testing/synctest bubble, where minutes of backoff take no time.
// [Collection.ListerWatcher] is a reflector's source through that door. [Server.Listen] and
// [Server.Kubeconfig] open the door over HTTP, for kubectl and for programs that are started apart.
// Both doors lead to one handler, so requests are encoded, logged, struck by faults and decoded
// alike.
//
// # Faults
//
// Faults are methods of a [Collection]: Disconnect, Expire, Mute, Fail, Throttle, Truncate, Delay,
// Stale, NoWatchList, and Intercept, which has a function answer. Each strikes once, [Times] n, or
// [UntilLifted]. It strikes lists and watches, or the verbs that [On] names; a watch list is both.
// A fault that has neither struck nor been lifted fails the test.
//
// No test needs to sleep: [Fault.Wait], [Server.AwaitRequests] and [Server.AwaitWatches] block
// until something has happened.
//
// # In place of envtest
//
// A controller's test gets all built-in kinds, and custom resources from files, in milliseconds and
// without a binary. The specs of controller-runtime's client run on it (TestClient in e2e/suites).
//
//	server := listwatchtest.NewServer(t)
//	builtin.Serve(server.Origin())                    // of server/builtin
//	err := crd.Serve(server.Origin(), "config/crd")   // of the module crd
//	manager, err := ctrl.NewManager(server.Config(), ctrl.Options{ … })
//
// # Guarantees
//
//  1. Writes obey the API server's rules for resource versions, UIDs, generations, conflicts,
//     finalizers and graceful deletion: those of [collection.Collection].
//  2. Lists and watches keep the promises of package watchcache: selectors, exact and
//     not-older-than versions, pages of one state, watch lists, bookmarks, a bounded window, and
//     the API server's errors. [Conform] checks them on this fake through both doors, and on a real
//     server.
//  3. A fault strikes everything in flight when the call is made, all at once. If nothing was under
//     way, it strikes the next request that it fits. It strikes exactly as often as it was told to.
//     Its effect is one that a network or a server has: bytes that stop coming, a connection that
//     ends early, a Status. No error is made up in the client.
//  4. A client owns the objects that it is given. Nothing is shared with the fake, so code that
//     modifies an object spoils no other client's copy. If the code read through
//     [Collection.ListerWatcher], it fails the test.
//  5. Nothing is left running. A request's goroutines end when its body is closed, all others with
//     the test.
//
// # Limits
//
// The fake lacks the features that package watchcache does not model: admission, conversion,
// authentication, quota, garbage collection, logs and exec. docs/fake.md lists the differences,
// case by case. Nor does it have RBAC, or priority and fairness: Fail(List,
// apierrors.NewForbidden(…)) and Throttle show what they look like. Namespaces must exist if the
// server serves them, and need not otherwise. A deleted namespace is Terminating until its
// objects have gone, as with a namespace controller. No kubelet runs: a bound pod that is deleted
// stays, marked, until [Collection.Remove], and so does its namespace.
//
// A client is held to all rules: its pods get defaults, and a pod without containers is a 422. The
// methods of a [Collection] store an object as it is, so that a test can prepare any state.
//
// No fault refuses a connection, sends an object that cannot be decoded, or imitates a server
// before 1.27, which ignores sendInitialEvents instead of refusing it. The doors have no TLS,
// HTTP/2 or proxies.
//
// # Beside a real server
//
// All rows of [Conform] pass on kube-apiserver 1.36.3 with etcd 3.6.8 too, in protobuf and in JSON,
// none skipped. A real server does two things otherwise, and no row compares them:
//
//   - Lists and watches at version 0, or not older than a version, come from its cache. That cache
//     may lag a moment behind an acknowledged write. This fake shows every write at once, except
//     under [Collection.Stale].
//   - It sends no bookmark at the version at which the watch began, except the one that ends the
//     initial events. This fake sends them all.
//
// # Cost
//
// A request through memory costs a goroutine and the encoding of the answer: 20 µs for a small
// pod (BenchmarkListThroughMemory). A fault costs a look under one lock per request and event.
//
// How to test with faults: docs/howto/test-faults.md.
package listwatchtest
