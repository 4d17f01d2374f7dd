package sources

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/manifest"
)

// Op is what happened to the pods of an update; the words are the kubelet's.
type Op string

// The operations, in the order in which one change of a source is told.
const (
	// Remove is pods that are gone from their source.
	Remove Op = "REMOVE"
	// Add is pods that are new in their source.
	Add Op = "ADD"
	// Update is pods whose spec, labels or annotations changed.
	Update Op = "UPDATE"
	// Delete is pods that are to stop gracefully: they have a deletionTimestamp.
	Delete Op = "DELETE"
	// Reconcile is pods of which only the status changed.
	Reconcile Op = "RECONCILE"
)

// PodUpdate is one operation on pods of one source.
type PodUpdate struct {
	Op Op `json:"op"`
	// Source is the name of the source: "api", "file", "http", or what a source of your own is called.
	Source string `json:"source"`
	// Pods are as they are now; of a REMOVE, as they were last told. They are shared and read-only.
	Pods []*corev1.Pod `json:"pods"`
	// Restored: this is from a checkpoint of an earlier run (see [Checkpoint]), and may be out of date.
	Restored bool `json:"restored,omitempty"`
}

// Names of the sources of this package, which are the kubelet's.
const (
	APISource  = "api"
	FileSource = manifest.SourceFile
	HTTPSource = manifest.SourceHTTP
)
