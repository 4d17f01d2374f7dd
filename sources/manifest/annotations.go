package manifest

// The annotations by which a node tells pods of manifests from pods of the API server. The names are the kubelet's.
const (
	// SourceAnnotation says where a pod comes from: "file", "http" or "api". A Decoder leaves it alone, because only
	// the consumer of all sources knows it for every pod.
	SourceAnnotation = "kubernetes.io/config.source"
	// HashAnnotation holds the UID of a pod of a manifest. A Decoder sets it, over what the manifest says.
	HashAnnotation = "kubernetes.io/config.hash"
	// SeenAnnotation holds the time at which the node first saw the pod, in RFC 3339. A Decoder leaves it alone, so that
	// the same bytes give the same pod.
	SeenAnnotation = "kubernetes.io/config.seen"
	// MirrorAnnotation marks the copy of such a pod that a node keeps in the API server. A Decoder leaves it alone.
	MirrorAnnotation = "kubernetes.io/config.mirror"
)

// The values of Decoder.Source, which are those of SourceAnnotation.
const (
	SourceFile = "file"
	SourceHTTP = "http"
)
