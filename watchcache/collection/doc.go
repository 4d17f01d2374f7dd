// Package collection is a collection that is written under the API server's rules.
//
//	pods, err := collection.New(watchcache.Pods(), watchcache.NewRevision())
//	if err != nil { … }
//	pod, err := pods.Create(&corev1.Pod{ … })
//
// apiserver.Serve makes one that Kubernetes clients can reach. [New] keeps objects in memory; [On]
// keeps them in a [Storage], of which package etcd has one.
//
// # Guarantees
//
// Resource versions grow by one with each write, over all collections of one revision; a storage
// has versions of its own. Writers in memory wait for each other, and never for a reader.
// Everything that [watchcache.Cache] promises to readers holds.
//
// # How it differs from the API server
//
// Not modelled: admission, defaulting, validation beyond names, the existence of namespaces,
// garbage collection (propagationPolicy and orphanDependents are ignored), managed fields before
// the first apply.
//
// Simpler than there: server-side apply finds conflicts, takes over by force and removes the fields
// that its manager no longer applies. It knows no schema, so it replaces lists as a whole, even
// lists with keys. An update of the status changes nothing else. Create takes a status as given.
// Every kind may be updated without a resource version. A new finalizer may be added to an object
// that is being deleted.
package collection
