// Package lookup finds the pod of an IP address, a container, a cgroup or a UID on one node, and
// the workload that the pod belongs to. It follows the pods of package sources.
//
//	pods := sources.New("node-1", sources.APIServer(client))
//	find := lookup.New(pods, lookup.Owners(client), lookup.KeepEnded(5*time.Minute))
//	ended := make(chan error, 1)
//	go func() { ended <- find.Run(ctx) }()
//	if err := pods.WaitSynced(ctx); err != nil { … }
//	if pod := find.ByIP(address); pod != nil {
//		owner, known := find.Owner(pod.Pod) // such as its Deployment
//	}
//	…
//	return <-ended // Run's error; nil at the end of ctx
//
// # Guarantees
//
//  1. A look-up takes no lock and allocates nothing. It never waits for a source, nor for the API
//     server. [Lookup.Wait] and [Lookup.WaitOwner] wait, for what has just begun.
//  2. A state of a source is in the tables before the reader of [sources.Sources.Updates] is told.
//     So each pod that the reader is told is found.
//  3. A look-up finds the pods as [sources.Sources.Merged] joins them, with all of their values: a
//     static pod is found by each of its UIDs, for example. It returns the newest state of the pod.
//  4. If two pods have one value, such as an IP address, a running pod is found before one that has
//     a deletionTimestamp, and both before one that has finished. Of two alike, the one that
//     started later is found. With [KeepEnded], all these are found before the pod that had the
//     value last.
//  5. All that is held goes with the pods: see [KeepEnded] for the only exception.
//
// # Static pods
//
// The UID of a static pod is a hash that each reader makes for itself: the kubelet's is a hash of
// Go structs that change with its version, and ours is another one. The kubelet's UID names the
// cgroup, the folder of logs and the [manifest.HashAnnotation]. A static pod is found by it and by
// its cgroup if a source has that UID: the API server by the mirror pod, the kubelet itself, or the
// manifest in metadata.uid. If a file or URL without a UID is the only source of the pod, it is not
// found so. The same is true while the mirror is not there yet. [Lookup.ByName] finds it in each
// case, and the folder of its logs has its name.
//
// # Cost
//
// A change of a pod joins it anew. If its values are others than before, it writes them into
// immutable tables. So the cost of a state is its difference from the one before. A look-up takes
// about 15 ns. For each ReplicaSet and Job on the node [Owners] makes one request, and three if it
// is gone.
//
// How to use it: docs/node-agents.md.
package lookup
