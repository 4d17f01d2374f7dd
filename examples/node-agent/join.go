package main

import (
	"bytes"
	"encoding/json"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/sources/lookup"
)

// record is one line of a log, with the pod that wrote it.
type record struct {
	Time      string            `json:"time,omitempty"`
	Namespace string            `json:"namespace"`
	Pod       string            `json:"pod"`
	Container string            `json:"container"`
	Workload  string            `json:"workload,omitempty"` // Kind/name
	Guess     string            `json:"guess,omitempty"`    // in its place while it is not known
	Labels    map[string]string `json:"labels,omitempty"`
	Stream    string            `json:"stream,omitempty"`
	Partial   bool              `json:"partial,omitempty"` // the rest of the line follows
	Log       string            `json:"log"`
}

// joiner writes lines as records of JSON. The first error ends it.
type joiner struct {
	who    *lookup.Lookup
	out    io.Writer
	counts counts
	failed error
}

// tell joins one line of a container with its pod.
func (j *joiner) tell(pod *lookup.Pod, container string, line []byte) {
	if j.failed != nil {
		return
	}
	r := record{Namespace: pod.Pod.Namespace, Pod: pod.Pod.Name, Container: container, Labels: pod.Pod.Labels}
	if owner, known := j.who.Owner(pod.Pod); known {
		r.Workload = named(owner)
	} else {
		guess, _ := j.who.Guess(pod.Pod) // the page /statusz has the reason
		r.Guess = named(guess)
	}
	r.parse(line)
	j.counts.lines.Inc()
	j.failed = json.NewEncoder(j.out).Encode(r)
}

// named is empty for no owner.
func named(owner metav1.OwnerReference) string {
	if owner.Kind == "" {
		return ""
	}
	return owner.Kind + "/" + owner.Name
}

// parse takes a line of the container runtime apart: its time, the stream, F or P for a full line
// or a part of it, and the text. Any other line is a text.
func (r *record) parse(line []byte) {
	parts := bytes.SplitN(line, []byte{' '}, 4)
	if len(parts) == 4 && (string(parts[1]) == "stdout" || string(parts[1]) == "stderr") {
		r.Time, r.Stream = string(parts[0]), string(parts[1])
		r.Partial = bytes.HasPrefix(parts[2], []byte{'P'})
		line = parts[3]
	}
	r.Log = string(line)
}
