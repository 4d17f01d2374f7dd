// Package origin has a [Collection], whose objects an etcd keeps: the origin of the objects, as
// beside kube-apiserver. It is written by the rules of server/collection, which are those of an API
// server. apiserver.ServeCollection serves it to Kubernetes clients, so that it survives its
// server, and several servers share one truth. To read what others write, package etcd is enough.
//
// # Guarantees
//
//  1. A write is made on the state on which it was decided, or decided again. No write that was
//     acknowledged is lost, whoever else writes.
//  2. A read without a version shows every write that was acknowledged before, by whatever server:
//     etcd's revision is asked for, and the cache answers once it has reached that. There is one
//     watch of etcd, however many clients read.
//  3. Versions are etcd's: those of several servers are comparable, and a watch may move between
//     them.
//  4. Exact versions, and further pages of a list, that the cache has forgotten are read from
//     etcd. They are a 410 once etcd has compacted them. Such a list has no remainingItemCount.
//  5. Objects expire, if etcd.WithExpiry says so: etcd deletes them, and watchers are told.
//  6. While etcd does not answer, a write is a 503 after ten seconds at most. It says since when,
//     and whether the write may have been made. [Collection.Status] has the same cause.
//
// How to serve an etcd to kubectl: docs/serve.md.
package origin
