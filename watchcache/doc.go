// Package watchcache is the server half of Tributary: a collection that remembers its last changes, so that any
// number of watchers can follow it, and an HTTP handler that serves such collections to Kubernetes clients.
//
// A server that kubectl and client-go can talk to:
//
//	server, err := watchcache.NewServer()
//	if err != nil { … }
//	pods := watchcache.Serve(server, watchcache.Pods())
//	go http.ListenAndServe("localhost:8080", server)
//	pods.Create(&corev1.Pod{ … })
//
// A [Collection] is the origin of its objects. A [Cache] is a copy that a reflector fills; [ServeCache] serves one,
// under the resource versions of the server it was copied from.
//
// # What is guaranteed
//
//  1. A watcher sees every change after its position, once, in order, or gets one error and ends: 410 Expired once
//     it has fallen out of the window. The window is bounded ([WithWindow]); there is no queue per watcher.
//  2. What a watcher has seen, applied in order, is the state that its selectors keep. An object that stops
//     matching is Deleted, one that starts to match is Added.
//  3. A list is a snapshot, complete up to the resource version that it names. A watch from that version has no gap.
//     Further pages show the same snapshot, or are a 410.
//  4. Resource versions of a server grow by one with each write, over all its collections. Writers are serialised.
//  5. Readers, lists and watchers never hold up a writer, nor each other.
//
// # Cost
//
// A change is encoded once per format, whatever the number of watchers over HTTP. The window keeps the old version
// of each object it has a change of, and the encodings that somebody asked for. A list is written object by object;
// sorting it takes eight bytes per object. A waiting watcher costs its stack and about 2 KB.
//
// # How it differs from the API server
//
// Not modelled: admission, defaulting, validation beyond names, conversion between versions, RBAC, audit, quota, the
// existence of namespaces, garbage collection (propagationPolicy and orphanDependents are ignored), server-side
// apply and managed fields, dryRun (refused with 400), fieldValidation (ignored), OpenAPI (kubectl create, apply and
// replace need --validate=false), aggregated discovery (clients fall back), CBOR and YAML, gzip, subresources but
// status, the old /watch/ paths, priority and fairness.
//
// Simpler than there: an update of the status changes nothing else; Create takes a status as given; a patch without
// a resource version is tried five times; lists are ordered by namespace, then name.
package watchcache
