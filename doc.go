// Package tributary is the root of an SDK that keeps live, local, read-only copies of Kubernetes
// collections. It has no code of its own; begin with the package that names what you want:
//
//   - sources: the pods of one node, from the API server, manifest files and a URL, in one channel
//     of updates.
//   - store and reflector: a typed copy of any collection, as immutable snapshots with indexes.
//   - undelta: the full state pushed once per change.
//   - watchcache: the server half, which serves collections to kubectl and client-go.
//   - listwatch: what the copies are made from.
package tributary
