// Package store holds copies of Kubernetes collections as immutable snapshots.
//
// One reflector writes an [Indexer], and any number of goroutines read it:
//
//	byNode := store.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
//	pods := store.NewIndexer(byNode)
//	// … a reflector fills pods …
//	now := pods.Snapshot()
//	pod, ok := now.Get(store.Key("default", "web-0"))
//	for pod := range byNode.Objects(now, "node-1") { … }
//
// Lookups by namespace and by label need no function of yours:
//
//	pods := store.NewIndexer(store.ByNamespace[*corev1.Pod](), store.ByLabel[*corev1.Pod]("app"))
//	for pod := range pods.Snapshot().Select("default", selector) { … }
//	pod, err := store.Find(pods, "default", "web-0") // apierrors.IsNotFound knows the error
//
// # Guarantees
//
//  1. A [Snapshot] never changes. Its indexes agree with its objects. It holds the effects of all
//     writes up to its resource version.
//  2. Taking a snapshot is O(1), and reading a snapshot takes no lock. Holding a snapshot costs the
//     memory of the later changes.
//  3. Writers are serialised. Taking a snapshot, and [Indexer.Get], wait for the edit of at most
//     one write. They never wait for a Replace that takes minutes to arrive, nor for an index's
//     function.
//  4. [Diff] of two snapshots yields every change between them exactly once, and costs as much as
//     they differ.
//  5. Replace is all or nothing: on an error the old content stays.
//
// # Limits
//
// All readers of the store and all later snapshots share its objects, which are read-only. Copy an
// object (DeepCopy) before changing it. Snapshots have no order of their own; [Snapshot.Sorted]
// sorts by namespace and name.
//
// # Cost
//
// Beside the objects, a store that was filled by a list holds about 60 bytes per object, and about
// 15 more per index: client-go's holds 70 to 110, and about 35 per index.
//
// A write changes in place the nodes that no snapshot holds. After a snapshot, the first write to a
// node copies the node, and the path to it from the root. In a row, writes take about as long as in
// client-go's store or less, and allocate only the results of the indexes' functions. With a
// snapshot before each write they take several times as long. Each then copies 0.5 KB at 110
// objects, 1.1 KB at 100,000, and 0.3 to 0.6 KB more per index. To look up an object after each
// write, use [Indexer.Get] and not a snapshot. Listing and a query by index take a quarter of the
// time in client-go's store or less.
// BenchmarkUpdate, BenchmarkUpdateBetweenSnapshots and the others measure it beside client-go.
//
// [Index.Objects] costs as much as it yields. [Snapshot.InNamespace] and [Snapshot.Select] read the
// objects of the best index: of the namespace ([ByNamespace]), or of a label that must have given
// values ([ByLabel]). Without such an index they look at every object.
//
// How to use it: docs/tutorial.md; why snapshots: docs/why-snapshots.md.
package store
