package sources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources/internal/access"
)

const (
	// nodeTimeout bounds a look at the Node, and so the wait of the first state for it.
	nodeTimeout = 5 * time.Second
	// nodeFirst and nodePause bound the pause after a look that found no Node. A node may register
	// later.
	nodeFirst, nodePause = time.Second, 30 * time.Second
	// nodeAgain is the pause after a look that failed, if the server answers otherwise.
	nodeAgain = 500 * time.Millisecond
	// asMetadata asks for the metadata of a Node alone, which has kilobytes of status.
	asMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// nodeState is what is known of the Node object of a node.
type nodeState int

const (
	unasked   nodeState = iota
	unchecked           // nobody is to ask
	found
	absent     // the server has no Node of the name
	unanswered // the last look failed
	forbidden  // the account may not get it
	unserved   // the server serves no nodes
)

// answered reports whether the server has said anything about the Node.
func (s nodeState) answered() bool { return s != unasked && s != unanswered }

// ownNode looks for the Node of the name that New was given.
type ownNode struct {
	client rest.Interface
	name   string
	log    logr.Logger
	first  chan struct{} // closed after the first look
	says   chan struct{} // closed after the first answer
	again  chan struct{} // receives if the server answers other requests

	mu     sync.Mutex // guards the fields below
	state  nodeState
	class  reflector.Class // of the last look
	faults int             // 1 once a look has found no Node
}

func newOwnNode(client rest.Interface, sink *Sink) *ownNode {
	return &ownNode{
		client: client, name: sink.Node(), log: sink.Log(), state: sink.nodeState,
		first: make(chan struct{}), says: make(chan struct{}), again: make(chan struct{}, 1),
	}
}

// start looks for the Node until it is found or ctx ends. stop ends that, and waits for the end.
func (n *ownNode) start(ctx context.Context) (stop func()) {
	if n.state == unchecked {
		close(n.first)
		close(n.says)
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { n.run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

func (n *ownNode) run(ctx context.Context) {
	asker := pace.Asker{Initial: nodeFirst, Limit: nodePause, Optional: true}
	hurried := false // the last pause was cut short
	for {
		state, err := n.look(ctx)
		if ctx.Err() != nil {
			return
		}
		class := reflector.Classify(err)
		n.note(state, class)
		answer, told, again := pace.Failed, pace.RetryAfter(err), n.again
		switch {
		case state == found, state == unserved:
			return
		case state == forbidden:
			answer = pace.Refused
		case class == reflector.Unreachable:
			answer = pace.Absent
		}
		if state != unanswered || hurried || told > 0 {
			again = nil
		}
		asked, pause := time.Now(), asker.Next(answer, told)
		if !rests(ctx, pause, again) {
			return
		}
		if hurried = time.Since(asked) < pause; hurried { // the server has answered another request
			rests(ctx, min(pause, nodeAgain), nil)
		}
	}
}

// rests waits for a pause, or until early receives. It returns false once ctx has ended.
func rests(ctx context.Context, pause time.Duration, early <-chan struct{}) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// look asks for the Node once. Version 0 lets the server answer from its memory.
func (n *ownNode) look(ctx context.Context) (nodeState, error) {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	err := n.client.Get().Resource("nodes").Name(n.name).Param("resourceVersion", "0").
		SetHeader("Accept", asMetadata).MaxRetries(0).Do(ctx).Error()
	switch class := reflector.Classify(err); {
	case err == nil:
		return found, nil
	case isNoNode(err, n.name):
		return absent, err
	case class == reflector.Forbidden:
		return forbidden, err
	case class == reflector.NotFound:
		return unserved, err
	}
	return unanswered, err
}

// isNoNode reports whether the server serves nodes, and has none of the name. A 404 for the
// resource has the same reason, and either no details or those that client-go has made up.
func isNoNode(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "nodes" && details.Name == name &&
		!slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse })
}

// note takes in a look, and logs what is new. A look that failed takes no answer back.
func (n *ownNode) note(state nodeState, class reflector.Class) {
	n.mu.Lock()
	before := n.state
	if state != unanswered || !before.answered() {
		n.state, n.class = state, class
	}
	if state == absent {
		n.faults = 1
	}
	n.mu.Unlock()
	if before == unasked {
		close(n.first)
	}
	if state.answered() && !before.answered() {
		close(n.says)
	}
	switch {
	case state == before:
	case state == absent:
		n.log.Error(n.doubt(), "Problem")
	case state == forbidden:
		n.log.Info("Whether the Node exists is not known, as the account may not get nodes", "node", n.name)
	case state == found && before == absent:
		n.log.Info("Problem is gone: the Node is found", "node", n.name)
	}
}

// listed waits for the first look, and has a failed one made again: the server answers. It does not
// wait for that.
func (n *ownNode) listed(ctx context.Context) {
	select {
	case <-n.first:
	case <-ctx.Done():
	}
	if n.now() == unanswered {
		select {
		case n.again <- struct{}{}:
		default: // it is to be made again already
		}
	}
}

// answered waits for the first answer, as the kubelet waits for its list of its own Node.
func (n *ownNode) answered(ctx context.Context) {
	select {
	case <-n.says:
	case <-ctx.Done():
	}
}

func (n *ownNode) now() nodeState {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state
}

// doubt is why the pods of the node may not be all.
func (n *ownNode) doubt() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch n.state {
	case absent:
		return access.Mark(string(reflector.NotFound), fmt.Errorf("the API server has no Node %q: "+
			"is that this node's name? Give New the spec.nodeName of the agent's own pod, by the downward API", n.name))
	case unanswered:
		return access.Mark(string(n.class), fmt.Errorf("the API server did not say whether it has a Node %q (%s)", n.name, n.class))
	}
	return nil
}

// report adds the Node to the report of its API server. A look that failed is a problem only if the
// server answers otherwise.
func (n *ownNode) report(report *Report) {
	report.Doubt = n.doubt()
	switch state := n.now(); {
	case state == absent, state == unanswered && len(report.Problems) == 0:
		report.Problems = append(report.Problems, report.Doubt)
	case state == forbidden:
		report.Mode += fmt.Sprintf("; whether the Node %q exists is not known: the account may not get nodes", n.name)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	report.Errors += n.faults
}
