package sources

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/sources/internal/access"
	"github.com/tributary-go/tributary/sources/internal/checkpoint"
	"github.com/tributary-go/tributary/undelta"
)

// APIServer reads the pods that the API server has bound to the node (spec.nodeName). client is the
// core/v1 REST client of a clientset. It needs permission to list and watch pods; a node's own
// credentials have it for the node's pods. A watch lasts 30 to 60 minutes, unless options have
// [reflector.WithWatchTimeout].
//
// The Node of the name is looked at once: if the server has none, that is a problem, the source is
// not Ready, and nothing is safe to prune until the Node is found. It is looked for until then. The
// account needs the verb get of nodes for that; without it, [health.Report].Mode says so, and a
// wrong name is a node without pods. [Input.WithoutNode] leaves the look out.
//
// A nil client, and a bad option, are an error of Run, or of Add.
func APIServer(client rest.Interface, options ...reflector.Option) Input {
	if null.Is(client) {
		return Input{name: APISource, err: fmt.Errorf("APIServer was given no client (%T): a fake clientset of client-go has none", client)}
	}
	if err := reflector.Validate(options...); err != nil {
		return Input{name: APISource, err: fmt.Errorf("APIServer: %w", err)}
	}
	return Custom(&apiServer{client: client, options: options})
}

// APISource is the name of the source of [APIServer].
const APISource = "api"

// apiStale is longer than the proof of a healthy copy is ever old: three minutes by default.
func apiStale(proof time.Duration) time.Duration { return 2*proof + time.Minute }

// apiWatch bounds a watch from below: it lasts up to twice as long. kube-apiserver takes the same
// half hour for a client that names no time (--min-request-timeout). client-go's 5 minutes are 8
// requests an hour of every node; bookmarks tell that a watch is alive in any case.
const apiWatch = 30 * time.Minute

type apiServer struct {
	client  rest.Interface
	options []reflector.Option
	running atomic.Pointer[reflector.Reflector[*corev1.Pod]]
	node    atomic.Pointer[ownNode]
	saver   *checkpoint.Saver[Pods] // set by Run, before running
}

func (a *apiServer) Name() string { return APISource }

// HoldsMirrors makes it a MirrorHolder.
func (a *apiServer) HoldsMirrors() {}

func (a *apiServer) savesCheckpoints() {}

func (a *apiServer) Run(ctx context.Context, sink *Sink) error {
	node := newOwnNode(a.client, sink)
	a.node.Store(node)
	defer node.start(ctx)()
	pods := listwatch.FromClient[corev1.Pod](a.client, "pods",
		listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", sink.Node())))
	restoring := false
	copied := undelta.New(func(now Pods) {
		if restoring {
			if now.Len() > 0 {
				sink.set(state{pods: now, restored: true})
			}
			return
		}
		node.listed(ctx) // before the first state: nothing is safe to prune without the Node
		sink.Set(now)
		if a.saver != nil {
			a.saver.Offer(now)
		}
	})
	if sink.checkpoints != "" {
		a.saver = checkpoint.NewSaver(checkpointOf(sink.checkpoints, sink.Node(), sink.name), sink.Log())
		restoring = true
		if err := restoreInto(copied, a.saver.Restore()); err != nil {
			return err
		}
		restoring = false
		defer a.saver.Run()()
	}
	r := reflector.New(pods, copied, append([]reflector.Option{reflector.WithLogger(sink.Log()), reflector.WithWatchTimeout(apiWatch)}, a.options...)...)
	a.running.Store(r)
	if sink.likeKubelet {
		node.answered(ctx)
	}
	return r.Run(ctx)
}

// reflected is the Status of the reflector, once there is one.
func (a *apiServer) reflected() *reflector.Status {
	r := a.running.Load()
	if r == nil {
		return nil
	}
	status := r.Status()
	return &status
}

func (a *apiServer) Report() Report {
	r, node := a.running.Load(), a.node.Load()
	if r == nil {
		return Report{}
	}
	status := r.Status()
	report := Report{Mode: "watch", StaleAfter: apiStale(status.ProofInterval), LastContact: status.LastContact, Errors: status.Failures}
	if status.Err != nil {
		report.Problems = []error{access.Mark(string(status.Class), status.Err)}
	}
	if v := status.Verdict(0); status.Err == nil && status.Synced && v.Err != nil {
		report.Problems = append(report.Problems, access.Mark(string(v.Class), v.Err))
	}
	node.report(&report)
	if a.saver != nil {
		if err := a.saver.Problem(); err != nil {
			report.Complete = len(report.Problems) == 0 // a checkpoint says nothing about the watch
			report.Problems = append(report.Problems, err)
			report.Errors++
		}
	}
	return report
}
