// Package sources merges the pods of one node into one channel of updates. It reads pods from the
// API server, from manifest files and from a URL: the kubelet's pod configuration as a library. It
// reads them from the node's kubelet, too: [Kubelet].
//
//	pods := sources.New("node-1",
//		sources.APIServer(clientset.CoreV1().RESTClient()),
//		sources.File("/etc/kubernetes/manifests"),
//		sources.HTTP("https://example.com/pods.yaml"))
//	ended := make(chan error, 1)
//	go func() { ended <- pods.Run(ctx) }()
//	for update := range pods.Updates() {
//		fmt.Println(update.Op, update.Source, len(update.Pods))
//	}
//	return <-ended // Run's error; nil at the end of ctx
//
// # Guarantees
//
//  1. Each source sets complete states. The merge tells the reader of Updates the difference
//     between two states, in the kubelet's order: REMOVE, ADD, UPDATE, DELETE, RECONCILE. An update
//     has pods of one operation and one source. They are ordered by namespace and name; those of a
//     URL keep the order of its list.
//  2. The first state of a source is told even if it is empty, by an ADD of no pods.
//     [Sources.Synced] closes once every source has been told; see [Input.Optional] for exceptions.
//  3. A source never waits for another source, nor for the reader of Updates. A reader keeps up
//     with a source if at most 64 states are pending, none of them older than 50 ms. It is told
//     each state, in order. For a late reader, pending states are coalesced into the newest one
//     until it has read everything: ADD then UPDATE is an ADD of the newer pod, and ADD then REMOVE
//     is nothing but a count in [Status].Missed; an [Observer] hears of such a pod, too. So memory
//     is bounded by the number of pods.
//  4. A bad manifest costs only itself, and keeps its last known good pods. [Sources.Status] names
//     the file, the URL or the object, and the reason. No content, header or password of a manifest
//     is in any message.
//  5. [Sources.SafeToPrune] is true only while the reader has a complete and fresh state of a
//     source. A problem leaves it true as long as the last known good pods are kept. A Doubt does
//     not: there is no Node of the name, or a kubelet may have just started.
//  6. When Run returns, all goroutines have ended, and Updates is closed.
//
// # Where it is kinder than the kubelet
//
// [LikeKubelet] turns all of this off.
//
//   - A file that turns bad, or cannot be read, keeps its pods until it is gone. The kubelet
//     removes them at the next interval, and may bring them back with any other file.
//   - A file is read once it has been left alone for a tenth of a second. The kubelet reads half of
//     it.
//   - If two files declare one name, the file that had it first keeps it, and the other takes over
//     when that file is gone. So a copy of a manifest changes nothing. At the start, the shortest
//     name counts: web.yaml, and not web-old.yaml. For the kubelet the last file that was read
//     counts.
//   - A renamed manifest, or a copy of the same content that takes over, does not restart the pod:
//     its UID depends on the folder. The kubelet's UID depends on the file.
//   - A path that was never there is a problem, and never safe to prune.
//   - A bad item of a list keeps the pod of its name. It does not keep other pods from being
//     removed.
//   - A file that names another pod swaps the two at once. The kubelet runs both until the interval
//     is over.
//   - The leftovers of editors and package managers are ignored; FIFOs are never opened.
//   - File events are followed through folders that are replaced, links that are switched and
//     renames of a single file.
//   - A folder that has gone away, or is unmounted, keeps its pods for a grace time: see
//     [static.WithGrace]. So does a folder while files in it are moved.
//   - All documents of a file, and the items of lists, are pods; each bad one costs only itself.
//   - An empty answer of a URL is an error, and so is one without a manifest, such as the page of a
//     login. A rejected answer is not remembered. Requests are conditional, back off, and do not
//     follow redirects to other servers.
//   - Updates from the API server carry the whole new object. The kubelet keeps most metadata as it
//     was first seen.
//
// # What other packages do
//
// The package lookup finds a pod by its IP address, container, cgroup or UID, and the workload of a
// pod. It is an [Observer]: it knows each pod before the reader of Updates is told.
//
// The package static reads files and URLs. Its options apply here, and it reads objects of any
// type.
//
// In Updates, pods of two sources are not compared: a name that two sources declare is two pods, as
// for the kubelet. [Sources.Merged] joins them. The pods are shared and read-only.
//
// Pods are kept decoded, and not packed (package store/packed): a node has some hundreds of them,
// each change is told whole, and a pod at rest would be decoded for each source and reader.
//
// The module sources/kubelet follows the kubelet's PodsAPI.
//
// How to use it: docs/node-agents.md; beside the kubelet: docs/kubelet.md.
package sources
