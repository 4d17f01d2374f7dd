package manifest

// The annotations by which a node tells static pods from pods of the API server. The names are the
// kubelet's. A Decoder sets HashAnnotation alone; the package sources sets the others.
const (
	// SourceAnnotation names the source of a pod: "file", "http", "api" or the name of another
	// source.
	SourceAnnotation = "kubernetes.io/config.source"
	// HashAnnotation holds the UID of a static pod. A Decoder overwrites the manifest's value.
	HashAnnotation = "kubernetes.io/config.hash"
	// SeenAnnotation holds the time at which the node first saw the pod, in RFC 3339 with
	// nanoseconds. A Decoder does not set it: the same bytes must give the same pod.
	SeenAnnotation = "kubernetes.io/config.seen"
	// MirrorAnnotation marks a mirror pod: the API server's copy of a static pod. Its value is the
	// HashAnnotation of that pod.
	MirrorAnnotation = "kubernetes.io/config.mirror"
)

// The values of Decoder.Source, which are those of SourceAnnotation.
const (
	SourceFile = "file"
	SourceHTTP = "http"
)
