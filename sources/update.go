package sources

import corev1 "k8s.io/api/core/v1"

// Op is the operation of an update; the words are the kubelet's.
type Op string

// The operations, in the order in which the difference between two states is told.
const (
	// Remove: the pods are gone from their source.
	Remove Op = "REMOVE"
	// Add: the pods are new in their source.
	Add Op = "ADD"
	// Update: the spec, labels or annotations of the pods changed.
	Update Op = "UPDATE"
	// Delete: the pods must stop gracefully; they have a deletionTimestamp.
	Delete Op = "DELETE"
	// Reconcile: only the status of the pods changed.
	Reconcile Op = "RECONCILE"
)

// operations has each Op once.
var operations = [...]Op{Remove, Add, Update, Delete, Reconcile}

// PodUpdate is one operation on pods of one source.
type PodUpdate struct {
	Op Op `json:"op"`
	// Source is the name of the source: "api", "file", "http", "kubelet", or the name of another
	// source.
	Source string `json:"source"`
	// Pods has the new state of each pod; for a REMOVE, its last told state. They are shared and
	// read-only.
	Pods []*corev1.Pod `json:"pods"`
	// Restored: the update is from a checkpoint of an earlier run (see [Checkpoint]), and may be
	// stale.
	Restored bool `json:"restored,omitempty"`
}
