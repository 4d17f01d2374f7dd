package manifest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MaxSize bounds a manifest: it may have less than so many bytes. It is the kubelet's limit.
const MaxSize = 10 << 20

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
}

// Decode gives the pods of a manifest in its order, and an error for each part of it that is not one. The path is that
// of the file, or the URL without user and query; it gets into UIDs and errors. No pods and no errors are the answer
// to a list without items. The pods belong to the caller and share nothing with data.
func (d Decoder) Decode(path string, data []byte) (pods []*corev1.Pod, rejected []*Error) {
	run := &run{decoder: d, path: path}
	switch {
	case len(data) >= MaxSize:
		run.reject(place{}, nil, ErrTooLarge)
	case d.LikeKubelet:
		run.likeKubelet(data)
	case isProtobuf(data):
		run.protobuf(data)
	default:
		run.stream(toUTF8(data))
	}
	return run.pods, run.rejected
}

// run is one call of Decode.
type run struct {
	decoder  Decoder
	path     string
	pods     []*corev1.Pod
	rejected []*Error
}

// place is where in a manifest something stands.
type place struct {
	document *document // nil for what is no text
	item     int       // from 1, or 0 outside of a list
}

func (r *run) reject(at place, pod *corev1.Pod, err error) {
	rejection := &Error{Path: r.path, Item: at.item, Pod: podKey(pod), Err: err}
	if at.document != nil {
		rejection.Document, rejection.Line = at.document.number, at.document.lineOf(at.item, err)
	}
	r.rejected = append(r.rejected, rejection)
}

// take admits a decoded pod, or rejects what did not decode.
func (r *run) take(at place, pod *corev1.Pod, err error) {
	if err == nil {
		err = r.decoder.admit(r.path, pod)
	}
	if err != nil {
		r.reject(at, pod, err)
		return
	}
	r.pods = append(r.pods, pod)
}

// stream reads all documents of a manifest.
func (r *run) stream(data []byte) {
	empty := true
	documents := splitDocuments(data)
	if len(documents) > maxPods {
		r.reject(place{}, nil, ErrTooLarge)
		return
	}
	for _, doc := range documents {
		if r.document(place{document: &doc}) {
			empty = false
		}
	}
	if empty {
		r.reject(place{}, nil, ErrEmpty)
	}
}

// document reads one document, and reports whether there is anything in it.
func (r *run) document(at place) bool {
	data, kind, err := openDocument(at.document.data)
	if err == nil && string(data) == "null" {
		return false
	}
	switch {
	case err != nil:
		r.reject(at, nil, err)
	case kind == podKind:
		pod, err := decodePod(data)
		r.take(at, pod, err)
	case kind == podListKind, kind == listKind:
		r.list(at, kind, data)
	default:
		r.reject(at, nil, errKind)
	}
	return true
}

func (r *run) list(at place, kind schema.GroupVersionKind, data []byte) {
	items, err := decodeItems(data)
	if err == nil && len(items) > maxPods {
		err = ErrTooLarge
	}
	if err != nil {
		r.reject(at, nil, err)
		return
	}
	for i, item := range items {
		at.item = i + 1
		if !r.decoder.LikeKubelet { // to the kubelet an item is a pod, whatever it calls itself
			if err := checkItemKind(item, kind); err != nil {
				r.reject(at, nil, err)
				continue
			}
		}
		pod, err := decodePod(item)
		r.take(at, pod, err)
	}
}

func (r *run) protobuf(data []byte) {
	kind, message, err := openProtobuf(data)
	if err == nil && kind == podKind {
		pod, err := decodeProtobufPod(message)
		r.take(place{}, pod, err)
		return
	}
	var items [][]byte
	switch {
	case err != nil:
	case kind == podListKind:
		items, err = protobufItems(message)
	default:
		err = errKind
	}
	if err != nil {
		r.reject(place{}, nil, err)
	}
	for i, item := range items {
		pod, err := decodeProtobufPod(item)
		r.take(place{item: i + 1}, pod, err)
	}
}
