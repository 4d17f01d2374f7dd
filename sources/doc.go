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
//     operation and one source, ordered by namespace and name.
//  2. The first state of a source is told even when it is empty, by an ADD of no pods. [Sources.Synced] closes when every
//     source has been told about.
//  3. A source never waits for another one, nor for the reader of Updates. A reader that keeps up sees every state; what a
//     slow one has not read is merged into one difference, so memory is bounded by the pods.
//  4. A manifest that cannot be used costs only itself, and keeps its last good pods; [Sources.Status] names the file,
//     the URL or the object, and the reason. No manifest's content, header or password is in any message.
//  5. When Run returns, all goroutines have ended, and Updates is closed.
//
// # What is not
//
// Pods of two sources are not compared with each other: one name declared twice is two pods, as it is for the kubelet.
// The pods are shared and read-only.
package sources
