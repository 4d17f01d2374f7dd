package sources

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/health"
	"github.com/tributary-go/tributary/sources/manifest"
)

// Source declares pods. A source is run once, by one [Sources].
type Source interface {
	// Name is the name of the source in its updates, and the value of [manifest.SourceAnnotation],
	// unless it is a [StatusHolder].
	Name() string
	// Run finds the pods and hands over each complete state by sink.Set, until ctx ends, which is
	// no error. It waits for every goroutine that it started. An error ends this source alone, and
	// shows in Status.
	Run(ctx context.Context, sink *Sink) error
	// Report is the present health of the source. Any goroutine may call it at any time. A source
	// must report a problem before it sets a state that lacks a pod, and report the end of the
	// problem only after it has set the complete state: [Sources.SafeToPrune] relies on this order.
	Report() Report
}

// Report is the health of one source; [health.Report] has the fields.
type Report = health.Report

// Sink takes the states of a source.
type Sink struct {
	node string
	name string // of the source, in this run
	log  logr.Logger
	// likeKubelet: the sources of this package behave like the kubelet, harm included.
	likeKubelet bool
	// release is that of the kubelet whose rules count for manifests.
	release manifest.Release
	// nodeState is unasked, or unchecked.
	nodeState nodeState
	// checkpoints is the folder of the checkpoints; empty: none are kept.
	checkpoints string
	set         func(state)
}

// NewSink makes a sink that hands each state to set, for the tests of a source. In a run, [Sources]
// makes the sinks.
func NewSink(node string, log logr.Logger, set func(Pods)) *Sink {
	return &Sink{node: node, log: log, set: func(next state) { set(next.pods) }}
}

// Node is the name of the node. The source sets the pods of that node.
func (s *Sink) Node() string { return s.node }

// Log is the logger for this source.
func (s *Sink) Log() logr.Logger { return s.log }

// Set hands over the complete state of the source. It does not block. One goroutine at a time may
// call it. From then on the pods belong to the merge and are read-only.
func (s *Sink) Set(pods Pods) { s.set(state{pods: pods}) }

// setInOrder is Set for pods that have an order of their own.
func (s *Sink) setInOrder(pods Pods, order []*corev1.Pod) { s.set(state{pods: pods, order: order}) }
