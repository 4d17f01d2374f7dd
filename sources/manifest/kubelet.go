package manifest

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// likeKubelet reads a manifest in the kubelet's two steps: as a Pod, and over HTTP, where that failed early enough, as a
// PodList. What comes after the first document is not looked at.
func (r *run) likeKubelet(data []byte) {
	at := place{document: 1}
	converted, err := toJSON(data)
	var kind schema.GroupVersionKind
	if err == nil {
		kind, err = kindOf(converted)
	}
	switch {
	case err == nil && kind == podKind:
		pod, err := decodePod(converted)
		r.take(at, pod, err)
		return
	case r.decoder.Source != SourceHTTP:
		if err == nil {
			err = errors.New("apiVersion and kind of a file must be v1 and Pod")
		}
	case isProtobuf(data):
		r.protobufList(data)
		return
	case err == nil && kind == podListKind:
		err = r.list(at, kind, converted)
		r.allOrNothing()
	case err == nil:
		err = errors.New("apiVersion and kind must be v1 and Pod or PodList")
	}
	if err != nil {
		var lined *lineError
		if errors.As(err, &lined) {
			at.line = lined.line
		}
		r.reject(at, nil, err)
	}
}

// protobufList reads protobuf as the kubelet does, who takes no single Pod in it.
func (r *run) protobufList(data []byte) {
	kind, _, err := openProtobuf(data)
	if err == nil && kind != podListKind {
		r.reject(place{}, nil, errors.New("apiVersion and kind of protobuf must be v1 and PodList"))
		return
	}
	r.protobuf(data)
	r.allOrNothing()
}

// allOrNothing gives up a list for its first bad item.
func (r *run) allOrNothing() {
	if len(r.rejected) > 0 {
		r.pods, r.rejected = nil, r.rejected[:1]
	}
}
