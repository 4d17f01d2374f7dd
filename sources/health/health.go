// Package health has the report that a source of pods, or a reader of files and URLs, gives of
// itself.
package health

import "time"

// Report is the health of one source or reader at one moment.
type Report struct {
	// Mode is how changes are noticed: "watch", "inotify" or "poll every 20s", for example. If it
	// is not the best mode, it gives the reason.
	Mode string
	// LastContact is the time of the last successful look, or of the last sign of life of a server.
	LastContact time.Time
	// StaleAfter is how old the proof of the state may be before it counts as stale. The proof is
	// LastContact, and for an API server the ProvenAt of its reflector. Zero: never.
	StaleAfter time.Duration
	// Doubt is why the answers of the source prove nothing at present, although it can be read: a
	// kubelet that may have just started, or a node name without a Node. It is one of Problems, and
	// the state is not Complete. Nil: each look is a proof.
	Doubt error
	// ProvenAt is the time of the last look that was a proof. If there is a Doubt, zero says that
	// there was none.
	ProvenAt time.Time
	// Problems are the present faults, one error for each file, URL or object. Empty: all is well.
	Problems []error
	// Complete: despite Problems nothing is missing. Every failing item kept its last known good
	// objects, or never declared any. Ignore it if Problems is empty.
	Complete bool
	// Warnings are remarks that hide no object: a file of a folder that is no manifest, a field of
	// a manifest that is not known and dropped. They matter neither to Ready nor to SafeToPrune.
	Warnings []error
	// Skipped is the number of files that are ignored for their names: hidden files, and the
	// leftovers of editors and package managers.
	Skipped int
	// Errors counts the faults since the start.
	Errors int
}
