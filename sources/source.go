package sources

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/sources/health"
)

// Source declares pods. One source is run once, by one [Sources].
type Source interface {
	// Name is what updates of this source are called, and the value of [manifest.SourceAnnotation].
	Name() string
	// Run finds the pods and hands over each complete state with sink.Set, until ctx ends, which is no error. It waits
	// for everything that it started. An error ends this source alone, and shows in Status.
	Run(ctx context.Context, sink *Sink) error
	// Report is the source's health now. It is called at any time and by any goroutine. What may be missing in a state shows
	// there before the state is set, and that nothing is only afterwards: [Sources.SafeToPrune] relies on it.
	Report() Report
}

// Report is the health of one source; [health.Report] has the fields.
type Report = health.Report

// Sink is where a source puts its states.
type Sink struct {
	node string
	name string // of the source, in this run
	log  logr.Logger
	// likeKubelet: the sources of this package are to do as the kubelet does, harm included.
	likeKubelet bool
	// checkpoints is the folder for the checkpoints of sources; empty: none are kept.
	checkpoints string
	set         func(state)
}

// NewSink makes a sink that hands each state to set, for the tests of a source. In a run, [Sources] makes it.
func NewSink(node string, log logr.Logger, set func(Pods)) *Sink {
	return &Sink{node: node, log: log, set: func(next state) { set(next.pods) }}
}

// Node is the name of the node whose pods are wanted.
func (s *Sink) Node() string { return s.node }

// Log is the logger for this source.
func (s *Sink) Log() logr.Logger { return s.log }

// Set hands over the complete state of the source. It does not block, and may be called by one goroutine at a time. The
// pods belong to the merge then and are read-only.
func (s *Sink) Set(pods Pods) { s.set(state{pods: pods}) }

// setInOrder is Set for a source whose pods have an order of their own.
func (s *Sink) setInOrder(pods Pods, order []*corev1.Pod) { s.set(state{pods: pods, order: order}) }
