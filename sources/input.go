package sources

import (
	"context"
	"errors"
	"time"

	"github.com/tributary-go/tributary/internal/null"
)

// Input is one source, and how it takes part in the merge. A function such as [APIServer], [File]
// or [Custom] makes one; its methods return a changed copy. Give inputs to [New], or to
// [Sources.Add] later. Any number of inputs of one kind is fine; [Input.Named] tells them apart. An
// Input is used once.
//
//	sources.New("node-1",
//		sources.APIServer(client).Required(time.Minute),
//		sources.File("/etc/vendor/pods").Named("vendor").Optional(0))
type Input struct {
	source   Source
	name     string        // empty: the source's own
	optional bool          // Synced does not wait for it beyond the deadline
	deadline time.Duration // from the beginning of the run
	node     nodeState     // unasked, or unchecked
	err      error         // why there is no source
}

// Custom is a source of your own. It may have the abilities [MirrorHolder] and [StatusHolder]. A
// source that is nil is an error of Run, or of Add.
func Custom(source Source) Input {
	if null.Is(source) {
		return Input{err: errors.New("Custom: the source is nil")}
	}
	return Input{source: source}
}

// Named gives the source a name of its own in place of the name of its kind. [PodUpdate].Source and
// [manifest.SourceAnnotation] have it, and [Sources.Remove] and [Sources.SafeToPrune] take it.
func (in Input) Named(name string) Input {
	in.name = name
	return in
}

// Optional limits how long [Sources.Synced] waits for the source, counted from its start. With
// zero, Synced does not wait for it at all.
func (in Input) Optional(wait time.Duration) Input {
	in.optional, in.deadline = true, wait
	return in
}

// Required sets a deadline, counted from the start of the source. [Sources.Synced] waits for the
// source with or without it. If the deadline passes before the source has been read, its Status has
// a problem that says so. Zero, the default: no deadline.
func (in Input) Required(deadline time.Duration) Input {
	in.optional, in.deadline = false, deadline
	return in
}

// WithoutNode tells that the API server need not have a Node object of the node's name, such as a
// server of pods alone. By default [APIServer] looks for the Node: a wrong name would be a node
// without pods.
func (in Input) WithoutNode() Input {
	if _, ok := in.source.(*apiServer); !ok && in.err == nil {
		in.source, in.err = nil, errors.New("WithoutNode: only an APIServer looks for the Node: leave it out for another source")
	}
	in.node = unchecked
	return in
}

// shown is the input with a source to name in Status: of one that adds none, a source that Run
// refuses to begin.
func (in Input) shown() Input {
	if err := in.check(); err != nil {
		in.source = refused{err}
	}
	return in
}

// refused stands for a source that could not be made. It never runs.
type refused struct{ err error }

func (refused) Name() string                       { return "source" }
func (refused) Report() Report                     { return Report{} }
func (r refused) Run(context.Context, *Sink) error { return r.err }

// check is the reason why the input adds no source.
func (in Input) check() error {
	if in.source == nil && in.err == nil {
		return errors.New("an empty Input adds no source: make one with a function such as APIServer, File or Custom")
	}
	return in.err
}

// apply makes an Input an Option of New.
func (in Input) apply(s *Sources) { s.inputs = append(s.inputs, in) }

// MirrorHolder is an optional ability of a [Source]. A source that has it reads from an API server:
// each of its pods with [manifest.MirrorAnnotation] is the mirror of a static pod, and does not
// declare a pod. [Sources.Merged] pairs the two.
type MirrorHolder interface {
	HoldsMirrors()
}

// StatusHolder is an optional ability of a [Source]. A source that has it reads from the kubelet of
// the node, which writes the status of pods. [Sources.Merged] shows that status beside the metadata
// and spec of other sources. In Updates its pods keep the kubelet's [manifest.SourceAnnotation]: it
// is "api", or else the pod is a static one.
type StatusHolder interface {
	HoldsStatus()
}

// checkpointer is a source that saves its states under its name: see Checkpoint.
type checkpointer interface {
	savesCheckpoints()
}
