// Package collection is a collection that is written under the API server's rules.
//
//	pods := builtin.Pods()
//	c, err := collection.New(pods.Kind, pods.Rules, watchcache.NewRevision())
//	if err != nil { … }
//	pod, err := c.Create(&corev1.Pod{ … })
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
// # Rules
//
// Metadata is checked with the API server's own library: names, labels, annotations, finalizers,
// owner references. System fields cannot be written, deletion adds the finalizers of its
// propagation policy, and a JSON patch has the API server's limits.
//
// The holder of a Collection is its owner, such as a test that prepares a state: it stores an
// object as it is. [Collection.With] is for the writes of a client, which is also held to the
// functions of the kind's [Rules]: those of pods fill in defaults, refuse invalid pods and know
// which fields may change. The zero Rules are those of a custom resource without a schema.
//
// # How it differs from the API server
//
// docs/fake.md lists the differences, case by case. Not modelled: admission but that of pods by
// default, garbage collection, and the rules of built-in kinds other than pods.
//
// Server-side apply is the API server's own library: it merges lists by their keys, finds
// conflicts, takes over by force and removes the fields that its manager no longer applies. It has
// the schemas of client-go's kinds; package crd, a module of its own, has those of custom
// resources. Clients' objects have managed fields from their creation on, the owner's from the
// first apply on.
package collection
