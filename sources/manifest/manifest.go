package manifest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/internal/limit"
)

// MaxSize bounds a manifest: it must have fewer bytes. The bound is the kubelet's.
const MaxSize = limit.Size

// maxPods bounds the documents and the items of a manifest. No node runs so many pods by far.
const maxPods = 1 << 14

// Decoder turns manifests into the pods of one node. It holds no state and may be copied and used by any number of
// goroutines.
type Decoder struct {
	// Node is the name of the node: the suffix of its pods' names, their spec.nodeName, and a part of their UIDs.
	Node string
	// Source is SourceFile or SourceHTTP. It is a part of the UIDs, and pods of files alone tolerate all taints that
	// evict. It is not put into SourceAnnotation.
	Source string
	// LikeKubelet takes a manifest for what the kubelet takes it for: the first document counts alone, and is one
	// Pod, or, from HTTP, a Pod or a PodList that is taken whole or not at all; any metadata.uid is good. Without it
	// every document and every item stands for itself.
	LikeKubelet bool
	// UIDPath stands in UIDs for the path that Decode is given. If it is the folder that is read, a
	// pod whose file is renamed or copied keeps its UID. Empty: that path. LikeKubelet ignores it,
	// since the kubelet has the path in the hash.
	UIDPath string
}

// Decode gives the pods of a manifest in its order, and an error for each part of it that is not one. The path is that
// of the file, or the URL without user and query; it gets into UIDs and errors. No pods and no errors are the answer
// to a list without items. The pods belong to the caller and share nothing with data.
func (d Decoder) Decode(path string, data []byte) (pods []*corev1.Pod, rejected []*Error) {
	r := &podRun{run: run{path: path, data: data, kind: podKind, list: podListKind, keyOf: d.keyOf}, decoder: d}
	r.object = func(at place, data []byte) {
		pod, err := decodePod(data)
		r.take(at, pod, err)
	}
	r.limits = ours
	if d.LikeKubelet {
		r.limits = limits{anyTwin: true}
	}
	switch {
	case len(data) >= MaxSize:
		r.reject(place{}, "", ErrTooLarge)
	case d.LikeKubelet:
		r.anyItem = true
		r.likeKubelet(data)
	case isProtobuf(data):
		r.protobuf(data)
	default:
		r.stream(toUTF8(data))
	}
	return r.pods, r.rejected
}

// podRun is one call of Decode.
type podRun struct {
	run
	decoder Decoder
	pods    []*corev1.Pod
}

// take admits a decoded pod, or rejects what did not decode.
func (r *podRun) take(at place, pod *corev1.Pod, err error) {
	if pod != nil {
		at.key = r.keyOf(pod.Namespace, pod.Name) // before it is bound to the node
	}
	if err == nil {
		err = r.decoder.admit(r.path, pod)
	}
	if err != nil {
		r.reject(at, podKey(pod), err)
		return
	}
	r.pods = append(r.pods, pod)
}

func (r *podRun) protobuf(data []byte) {
	kind, message, err := openProtobuf(data)
	if err == nil && kind == podKind {
		pod, err := r.limits.decodeProtobufPod(message)
		r.take(place{raw: message}, pod, err)
		return
	}
	var items [][]byte
	switch {
	case err != nil:
	case kind == podListKind:
		items, err = protobufItems(message)
	default:
		err = r.wrongKind()
	}
	if err != nil {
		r.reject(place{}, "", err)
	}
	structs := 0
	for i, item := range items {
		if structs += messageWeight(item, maxDepth); structs > maxObjects {
			r.reject(place{item: i + 1, raw: item}, "", fmt.Errorf("%w, and what follows is not read", ErrTooLarge))
			return
		}
		pod, err := r.limits.decodeProtobufPod(item)
		r.take(place{item: i + 1, raw: item}, pod, err)
	}
}
