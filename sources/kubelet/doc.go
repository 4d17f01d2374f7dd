// Package kubelet reads the pods of a node from its kubelet's PodsAPI (KEP-4188), with no request
// to the API server:
//
//	pods := sources.New("node-1",
//		sources.APIServer(clientset.CoreV1().RESTClient()).Optional(0),
//		kubelet.PodsAPI())
//
// The PodsAPI is gRPC on a socket that root alone may open. It is alpha and off in Kubernetes 1.36,
// beta and on in 1.37: the feature gate of the kubelet is PodsAPI. Where it is off,
// [github.com/tributary-go/tributary/sources.Kubelet] polls the kubelet's /pods.
//
// The package is a module of its own: gRPC would add 12 MB to each program that has pod sources.
//
// # Guarantees
//
//  1. A change that the kubelet tells is set at once. A change of labels, annotations or spec comes
//     with the next list, as the kubelet 1.36 tells only changes of status: see [WithInterval].
//  2. Pods are kept by UID. A list comes every interval, a second after an event, and after each
//     gap: an event can be older than the list that it overtakes, and events can be lost. A list
//     settles the state, except for pods that an event has changed while the list was under way. A
//     pod that a list has dropped comes back by a list alone. So no status goes back.
//  3. A pod that was told DELETED does not come back under its UID, though lists hold it for some
//     time. A static pod does, if its manifest is put back: its UID depends on the manifest.
//  4. A restarted kubelet lists few pods until it has read its own sources, and marks all of them
//     anew (kubernetes.io/config.seen). If a list does not show that the kubelet is the same one, a
//     missing static pod is kept for [WithGrace]. A missing pod of the API server is kept until two
//     lists with others lack it, or, while none is listed, for an hour. Report names the number of
//     kept pods. A list without a pod of the API server is no proof unless its kubelet has listed
//     one before: it is not Ready, and never safe to prune. Nor are the pods of another node.
//  5. FAILED_PRECONDITION says that the kubelet is not ready: the state stays as it is. Without a
//     first answer there is no state, rather than an empty one.
//  6. At most one list a second is made, and far less than the 100 requests a second that all
//     clients of a kubelet share. Failures back off up to the interval, with jitter.
//  7. A list may have 64 MiB. A pod that cannot be decoded costs only itself; while there is one,
//     no missing pod is dropped.
//
// Errors name the socket and the code of a failure. They never repeat the kubelet's text.
//
// How to choose a source: docs/node-agents.md.
package kubelet
