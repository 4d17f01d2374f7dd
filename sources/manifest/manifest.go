package manifest

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/internal/podapi"
	"github.com/tributary-go/tributary/sources/internal/limit"
)

// MaxSize bounds a manifest: it must have fewer bytes. The bound is the kubelet's.
const MaxSize = limit.Size

// maxPods bounds the documents and the items of a manifest. No node runs nearly as many pods.
const maxPods = 1 << 14

// Decoder turns manifests into the pods of one node. It holds no state: copy it, and use it from
// any number of goroutines.
type Decoder struct {
	// Node is the name of the node: the suffix of its pods' names, their spec.nodeName, and a part
	// of their UIDs.
	Node string
	// Source is SourceFile or SourceHTTP. It is a part of the UIDs. Only pods of files tolerate all
	// taints that evict. Decode does not set SourceAnnotation.
	Source string
	// LikeKubelet reads a manifest as the kubelet does. Only the first document counts. It is one
	// Pod, or, over HTTP, a PodList that is taken as a whole or not at all. Any metadata.uid is
	// accepted. Without LikeKubelet every document and every item stands for itself.
	LikeKubelet bool
	// Release is the release of the kubelet whose rules count. See [ParseRelease].
	Release Release
	// UIDPath stands for the path of Decode in UIDs. If it is the folder that is read, a pod keeps
	// its UID when its file is renamed or copied. Empty: the path of Decode. LikeKubelet ignores
	// it, since the kubelet hashes the path.
	UIDPath string
	// Warn, if not nil, is called by Decode for each pod with fields that are not known: misspelt
	// ones, or those of a later release than Release or the k8s.io/api of the build. Such fields
	// are dropped, as the kubelet drops them. [Error.Fields] are their paths. In protobuf, fields
	// that the build does not have are not noticed.
	Warn func(*Error)
}

// Decode returns the pods of a manifest in its order, and one error for each part that gave no pod.
// path is that of the file, or the URL without user and query; UIDs and errors have it. A list
// without items gives no pods and no errors. The pods belong to the caller and share no memory with
// data.
func (d Decoder) Decode(path string, data []byte) (pods []*corev1.Pod, rejected []*Error) {
	r := &podRun{run: run{path: path, data: data, kind: podKind, list: podListKind, keyOf: d.keyOf}, decoder: d}
	r.object = r.json
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

// json takes a pod in JSON, and warns of the fields that are dropped.
func (r *podRun) json(at place, data []byte) {
	r.take(at, func(release podapi.Release) (decoded, error) { return decodePod(data, release) })
}

// message takes a pod in protobuf. Its fields have numbers, so that none is misspelt.
func (r *podRun) message(at place, data []byte) {
	r.take(at, func(podapi.Release) (decoded, error) {
		pod, err := r.limits.decodeProtobufPod(data)
		return decoded{pod: pod}, err
	})
}

// take admits a pod by the first release that accepts it, or rejects the part for the reason of the
// first release. Each decodes it anew, since a release makes its own pod of it.
func (r *podRun) take(at place, decode func(podapi.Release) (decoded, error)) {
	var pod *corev1.Pod // of the first release
	var worst error
	for i, release := range r.decoder.Release.is.Each() {
		d, err := decode(release)
		if i == 0 && d.pod != nil {
			at.key = r.keyOf(d.pod.Namespace, d.pod.Name) // before it has the node's suffix
			pod = d.pod
		}
		if err == nil {
			err = r.admit(at, release, &d)
		}
		if err == nil {
			r.pods = append(r.pods, d.pod)
			if warn := r.decoder.Warn; warn != nil && len(d.unknown) > 0 {
				slices.Sort(d.unknown)
				warn(r.fault(at, podKey(d.pod), slices.Compact(d.unknown)))
			}
			return
		}
		if i == 0 {
			worst = err
		}
	}
	r.reject(at, podKey(pod), worst)
}

// admit makes a decoded pod a pod of this node. From 1.37 on an item of a list over HTTP keeps its
// apiVersion and kind, whatever they are.
func (r *podRun) admit(at place, release podapi.Release, d *decoded) error {
	kinds := d.pod.TypeMeta
	if err := r.decoder.admit(r.path, release, d); err != nil {
		return err
	}
	if release >= podapi.R137 && at.item > 0 && r.decoder.Source == SourceHTTP {
		d.pod.TypeMeta = kinds
	}
	return nil
}

func (r *podRun) protobuf(data []byte) {
	kind, message, err := openProtobuf(data)
	if err == nil && kind == podKind {
		r.message(place{raw: message}, message)
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
		r.message(place{item: i + 1, raw: item}, item)
	}
}
