package manifest

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/internal/podapi"
)

var errKubeletKind = errors.New("apiVersion and kind must be v1 and Pod, or over HTTP PodList")

// likeKubelet reads a manifest in the kubelet's two steps: as a Pod, and over HTTP, if that fails
// early enough, as a PodList. It does not look beyond the first document.
func (r *podRun) likeKubelet(data []byte) {
	at := place{document: &document{number: 1, first: 1, line: 1, data: data}}
	converted, kind, err := r.limits.openDocument(at.document)
	switch {
	case err == nil && kind == podKind:
		r.one(at, converted)
	case r.decoder.Source == SourceHTTP && isProtobuf(data):
		r.protobufList(data)
	case err != nil:
		r.reject(at, "", err)
	case r.decoder.Source == SourceHTTP && kind == podListKind:
		r.items(at, kind, converted)
		r.allOrNothing()
	default:
		r.reject(at, "", errKubeletKind)
	}
}

// protobufList reads protobuf as the kubelet does: it takes no single Pod.
func (r *podRun) protobufList(data []byte) {
	kind, message, err := openProtobuf(data)
	if err == nil && kind != podListKind {
		err = errKubeletKind
	}
	var list corev1.PodList
	if _, limit := protobufItems(message); err == nil && errors.Is(limit, ErrTooLarge) {
		err = limit
	}
	if err == nil && list.Unmarshal(message) != nil {
		err = errProtobuf
	}
	if err != nil {
		r.reject(place{}, "", err)
		return
	}
	for i := range list.Items {
		r.take(place{item: i + 1}, func(podapi.Release) (decoded, error) { return decoded{pod: list.Items[i].DeepCopy()}, nil })
	}
	r.allOrNothing()
}

// allOrNothing drops a list for its first bad item.
func (r *podRun) allOrNothing() {
	if len(r.rejected) > 0 {
		r.pods, r.rejected = nil, r.rejected[:1]
	}
}
