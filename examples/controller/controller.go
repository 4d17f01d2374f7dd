package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tributary-go/tributary/controller"
	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/prom"
	"github.com/tributary-go/tributary/status"
	"github.com/tributary-go/tributary/store"
)

const (
	// label has the number of pods that run on a node or are to run there.
	label = "tributary.example/pods"
	// fieldManager owns the label (server-side apply), and names the client.
	fieldManager = "pods-per-node"
	// workers is how many nodes are looked at at once.
	workers = 2
	// ownWrite is how long a write of ours may take to come back before the node is looked at again
	// anyhow.
	ownWrite = 30 * time.Second
)

// byNode finds the pods that count, by their node: those that are bound and have not ended.
var byNode = store.NewIndex("node", nodesOf)

func nodesOf(p *corev1.Pod) []string {
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return nil
	}
	return []string{p.Spec.NodeName}
}

// program keeps the label of each node equal to the number of its pods.
type program struct {
	client  kubernetes.Interface
	pods    *informer.Informer[*corev1.Pod]
	nodes   *informer.Informer[*corev1.Node]
	loop    controller.Controller[string] // of names of nodes
	applies prometheus.Counter
	page    status.Handler
	forget  func() // drops the metrics of the copies and the loop

	printing sync.Mutex
	stdout   io.Writer // guarded by printing; a line for each label that was written
}

func newProgram(client kubernetes.Interface, registry prometheus.Registerer, stdout io.Writer) (*program, error) {
	copies, err := prom.New(registry)
	if err != nil {
		return nil, err
	}
	p := &program{
		client: client, stdout: stdout, page: status.Handler{Title: fieldManager},
		applies: prometheus.NewCounter(prometheus.CounterOpts{Name: "controller_applies_total", Help: "Labels written."}),
	}
	core := client.CoreV1().RESTClient()
	p.pods = informer.New(listwatch.FromClient[corev1.Pod](core, "pods"), informer.WithIndexes(byNode), informer.WithReflector(copies.Option("pods")))
	p.nodes = informer.New(listwatch.FromClient[corev1.Node](core, "nodes"), informer.WithReflector(copies.Option("nodes")))
	p.loop.Name, p.loop.Reconcile, p.loop.Workers = fieldManager, p.reconcile, workers
	// A pod that moves, or ends, concerns the node that it was on, too.
	p.loop.Feeds = []controller.Feed[string]{controller.For(p.nodes), controller.From(p.pods, nodesOf)}
	p.forget = copies.TrackAll(map[string]metrics.Reporter{"pods": p.pods, "nodes": p.nodes, fieldManager: &p.loop})
	p.page.Track("pods", p.pods)
	p.page.Track("nodes", p.nodes)
	return p, registry.Register(p.applies)
}

// work looks at nodes until stop ends; nodes in hand then are finished. Ctx is the leadership: with
// it everything ends at once, since another replica may be at work. Work is called once.
func (p *program) work(ctx, stop context.Context) error {
	p.loop.BaseContext = func() context.Context { return ctx }
	return p.loop.Run(stop)
}

// reconcile corrects the label of one node. It decides by the content of the copies, whatever the
// event was.
func (p *program) reconcile(ctx context.Context, name string) error {
	node, ok := p.nodes.Get(name)
	if !ok {
		return nil // its label has gone with it
	}
	count := strconv.Itoa(byNode.Len(p.pods.Snapshot(), name))
	if node.Labels[label] == count {
		return nil
	}
	// Applying to a name that is gone would make a new node: with the UID it is a conflict. Force,
	// since the label belongs to this controller alone.
	wanted := applycorev1.Node(name).WithUID(node.UID).WithLabels(map[string]string{label: count})
	applied, err := p.client.CoreV1().Nodes().Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return err
	}
	p.applies.Inc()
	p.printing.Lock()
	fmt.Fprintf(p.stdout, "%s pods=%s\n", name, count)
	p.printing.Unlock()
	// Read your own writes: the next look at this node must not decide by an older state.
	ctx, cancel := context.WithTimeout(ctx, ownWrite)
	defer cancel()
	return p.nodes.WaitFor(ctx, applied)
}
