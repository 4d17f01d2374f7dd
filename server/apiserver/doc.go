// Package apiserver serves collections over HTTP to Kubernetes clients: kubectl, client-go, and
// every other program that speaks to an API server.
//
//	server, err := apiserver.NewServer()
//	if err != nil { … }
//	pods := apiserver.Serve(server, builtin.Pods())
//	go http.ListenAndServe("localhost:8080", server)
//	pods.Create(&corev1.Pod{ … })
//
// [Serve] makes a collection that clients and Go code write. [ServeCache] serves a copy that a
// reflector fills, under the resource versions of the server that it was copied from.
//
// # kubectl
//
// Discovery, aggregated too, and OpenAPI v3 and v2 describe the resources, so that kubectl
// explains, edits, applies and diffs. Reviews of access allow everything to all users. Package
// [github.com/tributary-go/tributary/server/builtin] describes the built-in kinds.
// docs/fake.md has the commands with another output than on a real API server.
//
// # Web pages
//
// A browser on the server's machine lets any page send it requests. So a request must name a host
// that the server listens on, or one of [Server.AllowHosts] (TestHosts). Writes and web sockets are
// for pages of its own origin and of [Server.AllowOrigins] (TestRequestsOfPages,
// TestWebSocketsOfPages). A body without a Content-Type is a 415; kube-apiserver takes it as JSON.
// Calls from within the process, over pipes and over socket files may name any host.
// [Server.Guard] is for handlers beside the server. In `e2e/browser`, a hostile page is the judge.
//
// # Freshness and health
//
// A copy is fresh by proof: give its cache an upstream to ask, and name the reflector that fills
// it. The metadata of the same objects is enough for the proof, and the least to read:
//
//	pods := listwatch.FromClient[corev1.Pod](client, "pods")
//	names := listwatch.FromClient[metav1.PartialObjectMetadata](client, "pods")
//	cache, err := watchcache.NewCache(watchcache.Pods(), watchcache.WithUpstream(watchcache.ServerOf(names)))
//	if err != nil { … }
//	filler := reflector.New(pods, cache)
//	apiserver.ServeCache(server, cache, builtin.Pods().View, apiserver.FilledBy(filler))
//
// A read without a version then shows every write that the upstream had acknowledged before, or
// fails with a 503 or 504. Without [watchcache.WithUpstream] nothing proves the copy: each such
// read has a Warning header that says so, which kubectl and client-go show
// (TestReadsWithoutAProofAreMarked).
//
// If the upstream does not answer for three seconds, [Server.Health], [Server.Samples], /readyz and
// a Warning header on old answers say since when and why (TestAFailingProofIsLoud). A failure of
// the reflector is said in the same places (TestReadinessFollowsTheUpstream). A watch from the
// version that its client has shows no old state, and asks the upstream nothing
// (TestAWatchThatGoesOnAsksNothing).
//
// /readyz and /healthz are 200 while each cache answers reads: it has been filled, and its upstream
// answers. They ask it, at most once a second. A copy without a proof stays ready when its
// reflector fails; /readyz?verbose tells. /livez is 200 while the program answers.
//
// # Cost
//
// A change is encoded once per format, whatever the number of watchers, and so are the objects of
// lists and initial events of a whole collection, within watchcache.WithListBytes; but for tables:
// their rows say how old the objects are now (TestRowsSayHowOldTheirObjectsAreNow). A list is
// written object by object; the events that a watcher takes at once are one write, up to 32 KiB
// (TestABurstIsFewWrites). An answer of 128 KiB or more that is no watch is compressed if the
// client accepts gzip, as Go's clients do unless rest.Config has DisableCompression. Lists of a
// whole collection share compressed pieces, too, some 32 objects at a time, in place of the plain
// encodings (TestCompressedListsSayTheSame).
//
// A burst of more than 4 KB over HTTP/1.1 takes two system calls, and one of more than 8 KB three
// (TestABurstIsFewSystemCalls): net/http has a buffer of 4 KB below each chunk, and offers no
// larger one.
//
// A client that does not read is cut after 30 seconds, and leaves nothing behind
// (TestAReaderOfAByteASecondIsCut, TestBadReadersLeaveNothingBehind,
// TestBadReadersOfListsLeaveNothingBehind). A watch has this time for each batch of at most 1 MiB,
// and another answer for each 32 KiB, in place of the http.Server's WriteTimeout: a slow reader
// gets all of its list (TestASlowReaderGetsAllOfItsAnswer). If the http.Server has
// an HTTP2.WriteByteTimeout, a connection of HTTP/2 is cut within a minute if its client takes
// nothing at all (TestAStreamEndsWithAClientThatDoesNotRead).
//
// An idle watch keeps a goroutine and the buffers of net/http. A watch over a web socket, as a
// browser makes it, has a message for each event (TestWebSocket).
//
// A body is read up to 3 MiB, for at most a minute. A document has at most 256 levels of nesting,
// and fewer the larger it is (TestNestedBodiesAreCheap, TestDeepBodies). Writes run at once as far
// as their bodies have room in 32 MiB, and wait for 30 seconds at most (TestWritesTakeTurns). The
// head of a request is bounded by http.Server.MaxHeaderBytes (TestLongHeaders).
//
// # How it differs from the API server
//
// Not modelled:
//
//   - Conversion between versions, authentication, RBAC, audit, quota, priority and fairness.
//   - Enums and list types in OpenAPI.
//   - Subresources but status and scale, and binding and eviction of pods (no log, no exec, no
//     ephemeral containers). An eviction asks the PodDisruptionBudgets that are served; no
//     controller computes their status. The old /watch/ paths.
//
// The write rules are those of [github.com/tributary-go/tributary/server/collection], for a
// client. If namespaces are served, an object's namespace must exist; otherwise any will do. A
// namespace that is being deleted takes no new objects, and goes when its objects have gone; the
// server deletes them (TestFinalizersHoldANamespace). For collections that were made elsewhere, see
// [EmptiesNamespaces].
//
// docs/fake.md compares the answers with those of a real API server.
//
// Simpler than there: a watch ends in silence when the server closes.
package apiserver
