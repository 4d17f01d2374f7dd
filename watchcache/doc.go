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
// # What is not
//
// Deliveries to different watchers are not ordered among each other. Events are not merged: a watcher sees each
// version of an object. After a [Cache.Replace] nobody knows the states that were skipped: exact lists at versions
// between the two lists are a 410.
//
// # Cost
//
// A change is encoded once per format, whatever the number of watchers over HTTP. The window keeps the old version
// of each object it has a change of, and the encodings that somebody asked for. A list is written object by object;
// each page sorts what is selected, at eight bytes per object. A waiting watcher costs its stack and 1.5 KB, and 7 KB
// more once it has read a burst.
//
// # How it differs from the API server
//
// Not modelled: admission, defaulting, validation beyond names, conversion between versions, authentication, RBAC,
// audit, quota, priority and fairness, the existence of namespaces, garbage collection (propagationPolicy and
// orphanDependents are ignored), server-side apply of a status (415), managed fields before the first apply, dryRun (refused with 400),
// fieldValidation (ignored), OpenAPI (kubectl create, apply and replace need --validate=false), aggregated discovery
// (clients fall back), CBOR and YAML, gzip, subresources but status (no eviction, binding, scale, log, exec), the
// old /watch/ paths.
//
// Simpler than there: server-side apply finds conflicts, takes over by force and removes what its manager no longer
// applies, but knows no schema, so that it replaces lists as a whole where they have keys; an update of the status changes nothing else; Create takes a status as given; every kind
// may be updated without a resource version; a new finalizer may be added to an object that is being deleted; a
// delete answers with the object where its kind is deleted gracefully, with a Status otherwise; lists are ordered by
// namespace, then name; a watch ends in silence when the server closes.
package watchcache
