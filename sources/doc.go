// Package sources joins the pods of one node, wherever they are declared, into one channel of updates: the API server,
// manifests in files, and manifests behind a URL. It is the kubelet's pod configuration as a library.
//
//	pods := sources.New("node-1",
//		sources.APIServer(clientset.CoreV1().RESTClient()),
//		sources.File("/etc/kubernetes/manifests"),
//		sources.HTTP("https://example.com/pods.yaml"))
//	go pods.Run(ctx)
//	for update := range pods.Updates() {
//		fmt.Println(update.Op, update.Source, len(update.Pods))
//	}
//
// # What is guaranteed
//
//  1. Each source sets its complete state; the merge turns each state into the difference from what the reader was told:
//     REMOVE, ADD, UPDATE, DELETE and RECONCILE, in this order, as the kubelet does. The pods of an update are of one
//     operation and one source, in the order of the list that a URL answered, and else by namespace and name.
//  2. The first state of a source is told even when it is empty, by an ADD of no pods. [Sources.Synced] closes when every
//     source has been told about, but for [Input.Optional] ones.
//  3. A source never waits for another one, nor for the reader of Updates. A reader keeps up with a source while it has all
//     that the source set more than 50 ms ago, and no more than 64 states wait; it is told each state, in order. For one
//     who does not, whatever waits of that source is merged into the newest state at once, and so on until it has read
//     everything: ADD then REMOVE is nothing, ADD then UPDATE is an ADD of the newer. So memory is bounded by the pods.
//  4. A manifest that cannot be used costs only itself, and keeps its last good pods; [Sources.Status] names the file,
//     the URL or the object, and the reason. No manifest's content, header or password is in any message.
//  5. [Sources.SafeToPrune] is true only while what the reader has been told of a source is whole and fresh. A problem with
//     what was good before, and is kept, does not make it less whole.
//  6. When Run returns, all goroutines have ended, and Updates is closed.
//
// # Where it is kinder than the kubelet
//
// [LikeKubelet] turns all of this off.
//
//   - A file that turns bad, or cannot be read, keeps its pods until it is gone. The kubelet removes them at the next
//     period, and may bring them back with any other file.
//   - A file is read when it has been left alone for a tenth of a second. The kubelet reads it half-written.
//   - Of two files that declare one name, the file that had it first keeps it, and the other takes
//     over when that is gone. A copy of a manifest changes nothing, by its name not even after a
//     restart. With the kubelet the last file that was read counts.
//   - A manifest that is renamed, or a copy of the same content that takes over, does not restart
//     the pod: its UID depends on the folder. The kubelet's depends on the file.
//   - A path that was never there is a problem, and never safe to prune.
//   - A bad item of a list keeps the pod of its name, and does not keep other pods from being
//     removed.
//   - A file that names another pod swaps at once. With the kubelet both run until the period is over.
//   - Editors' and package managers' leftovers are passed over; FIFOs are never opened.
//   - File events are followed through folders that are replaced, links that are switched and renames of a single file.
//   - A folder that has gone away keeps its pods for the time of [static.WithGrace].
//   - All documents of a file, and the items of lists, are pods; each bad one costs only itself.
//   - Of a URL, an empty answer is an error, and an answer that was not accepted is not remembered. Requests are
//     conditional, back off, and are not redirected to other servers.
//   - Updates from the API server carry the whole new object. The kubelet keeps most metadata as it was first seen.
//
// # What is not
//
// How files and URLs are read is in the package static, with its options, and for objects of any other type.
//
// In Updates, pods of two sources are not compared with each other: one name declared twice is two pods, as it is for the
// kubelet. [Sources.Merged] joins them. The pods are shared and read-only.
package sources
