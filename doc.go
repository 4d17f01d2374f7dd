// Package tributary is the root of an SDK that keeps live, local, read-only copies of Kubernetes
// collections. It has no code of its own. Begin with the package for your work:
//
//   - A node agent wants the pods of its node. Package sources merges the pods of the API server,
//     of manifest files and of a URL into one channel of updates.
//   - A controller wants typed events, indexes and to read its own writes: package informer. Its
//     folder clientgo adapts informers to client-go's interfaces, for existing programs.
//   - A unit test wants a server with the real semantics, and faults on demand: package
//     listwatch/listwatchtest.
//
// Below them, package listwatch reads a collection, package reflector keeps a store equal to it,
// and package store holds it as immutable snapshots. Package undelta pushes the full state once per
// change. Package watchcache serves a copy to any number of watchers, and to kubectl.
package tributary
