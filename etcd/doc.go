// Package etcd reads a Kubernetes collection where it is stored: a LIST is a range of keys at one
// revision, and a WATCH is a watch of them. A [Source] is a listwatch.ListerWatcher, so that a
// reflector keeps any store equal to the keys under a prefix, without an API server in between:
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
//	if err != nil { … }
//	pods, err := watchcache.NewCache(watchcache.Pods())
//	if err != nil { … }
//	err = reflector.New(etcd.New[corev1.Pod](client, "/registry/pods/"), pods).Run(ctx) // until ctx ends
//
// [NewFor] reads objects of a Go type that is chosen when the program runs. Package backup opens a
// backup file as if it were an etcd.
//
// Package origin makes a collection of a source that is written, too, and served to Kubernetes
// clients. This package links none of that.
//
// The package is a module of its own: programs that read an API server do not get etcd's
// dependencies. Endpoints, TLS, user and password are those of the clientv3.Client.
//
// # Guarantees
//
//  1. A list shows one revision, which is its resource version. It is read with RangeStream (etcd
//     3.7), or in pages if the server does not know RangeStream. Objects are decoded by several
//     goroutines while later ones arrive, and equal parts are decoded once, as listwatch does it.
//  2. The resource version of an object is the revision that last changed its key; of a deletion,
//     the revision of the deletion. Requests mean the same as to an API server: exact versions,
//     versions that are not older, limits, and continue tokens in kube-apiserver's own format.
//  3. A watch brings every change after its version, once, in order. The changes of one revision
//     come together: before the last of them, Event.ResourceVersion is the revision before. A
//     deletion carries the last state.
//  4. Values are read in each form that kube-apiserver writes: protobuf, JSON and CBOR. A
//     listwatch.DecodeError names each value that cannot be decoded, is encrypted at rest, or
//     stands under the key of another object. It costs no other object. Its deletion is told all
//     the same, by an object that has a name and a version and nothing else.
//  5. Errors have the classes that a reflector knows: 410 for a compacted revision and another
//     cluster, a version that is too large, 401, 403, 503 while there is no leader, a connection
//     that is cut or cannot be made. No error has a value, or a key beyond the prefix and the name
//     of an object.
//  6. A watch holds three answers of etcd at most: the one that is read, and the next two. A slow
//     reader makes etcd wait, not this process grow; a reader that is slower than compaction gets a
//     410.
//
// # Known faults of etcd
//
// Each watch has a gRPC stream of its own: watches that share one starve each other (etcd issue
// 17529), and one that is behind keeps progress from all (20242).
//
// A watch begins at the revision that its reader has, not after it, and drops the changes of that
// revision, which the reader has. So etcd refuses it if the changes after that revision may be
// incomplete. So do the servers that lost a deletion at the very revision of a compaction (18089,
// 19179). And progress is told at once while nothing is written: etcd tells none for a watch that
// begins in the future.
//
// Progress is asked for every [WithProgressEvery], if the reader wants bookmarks. Servers before
// 3.4.31 and 3.5.13 can answer before they have sent the events up to there (15220), and are not
// asked: bookmarks are then those that etcd sends by itself, every ten minutes. If an event comes
// that a bookmark had promised to be past, the watch ends with a 410, and the reflector lists anew.
//
// The last state of a deleted object can be missing, if a compaction overtakes the event (10681):
// the deletion is then told as in 4.
//
// # Limits
//
// Nothing is converted and no default is applied: an object is as it was written, in the version in
// which it was stored ([WithAPIVersion] refuses others). If an etcd was restored from a backup,
// kept its cluster ID and has passed the reader's version, a watch cannot see it.
//
// How to serve an etcd to kubectl: docs/serve.md.
package etcd
