package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/informer/enqueue"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/metrics"
	"github.com/tributary-go/tributary/prom"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/status"
	"github.com/tributary-go/tributary/store"
)

const (
	// label has the number of pods that run on a node or are to run there.
	label = "tributary.example/pods"
	// fieldManager owns the label (server-side apply), and names the client.
	fieldManager = "pods-per-node"
	// workers is how many nodes are looked at at once. One node is never looked at twice at a time.
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

// controller keeps the label of each node equal to the number of its pods.
type controller struct {
	client kubernetes.Interface
	pods   *informer.Informer[*corev1.Pod]
	nodes  *informer.Informer[*corev1.Node]
	queue  workqueue.TypedRateLimitingInterface[string] // of names of nodes
	log    logr.Logger
	counts counts
	page   *status.Handler
	forget func() // drops the metrics of pods and nodes

	printing sync.Mutex
	stdout   io.Writer // guarded by printing; a line for each label that was written
}

func newController(client kubernetes.Interface, registry prometheus.Registerer, log logr.Logger, stdout io.Writer) (*controller, error) {
	copies, err := prom.New(registry)
	if err != nil {
		return nil, err
	}
	c := &controller{client: client, log: log, stdout: stdout, page: &status.Handler{Title: fieldManager}}
	core := client.CoreV1().RESTClient()
	c.pods = informer.New(listwatch.FromClient[corev1.Pod](core, "pods"),
		informer.WithIndexes(byNode),
		informer.WithReflector(reflector.WithLogger(log.WithName("pods")), copies.Option("pods")))
	c.nodes = informer.New(listwatch.FromClient[corev1.Node](core, "nodes"),
		informer.WithReflector(reflector.WithLogger(log.WithName("nodes")), copies.Option("nodes")))
	c.forget = copies.TrackAll(map[string]metrics.Reporter{"pods": c.pods, "nodes": c.nodes})
	c.page.Track("pods", c.pods)
	c.page.Track("nodes", c.nodes)
	c.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	if c.counts, err = newCounts(registry, c.queue.Len); err != nil {
		return nil, err
	}
	// A pod that moves, or ends, concerns the node that it was on: Enqueue adds both. A replica
	// that is not the leader fills its queue too, with each node once, and has nothing to catch up
	// with when it becomes one.
	if _, err := c.pods.AddHandler(enqueue.Keys(c.queue, nodesOf)); err != nil {
		return nil, err
	}
	_, err = c.nodes.AddHandler(enqueue.Keys(c.queue, func(n *corev1.Node) []string { return []string{n.Name} }))
	return c, err
}

// close frees the parts of newController. It is called when pods, nodes and work have ended.
func (c *controller) close() {
	c.queue.ShutDown()
	c.forget()
}

// work looks at nodes as they are queued until stop ends; nodes in hand then are finished. Ctx is
// the leadership: with it everything ends at once, since another replica may be at work. Work is
// called once.
func (c *controller) work(ctx, stop context.Context) {
	c.counts.leading.Set(1)
	defer c.counts.leading.Set(0)
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(stop, cancel)()
	if c.pods.WaitSynced(waiting) != nil || c.nodes.WaitSynced(waiting) != nil {
		return // the end came first, and half a copy is nothing to act on
	}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for c.next(ctx, stop) {
			}
		})
	}
	<-waiting.Done()
	c.queue.ShutDown()
	all.Wait()
}

// next looks at one node; it is false at the end.
func (c *controller) next(ctx, stop context.Context) bool {
	name, ended := c.queue.Get()
	if ended {
		return false
	}
	defer c.queue.Done(name)
	if ctx.Err() != nil || stop.Err() != nil {
		return false // a queue that is shut down hands out the rest of its keys
	}
	if err := c.reconcile(ctx, name); err != nil {
		c.counts.failures.Inc()
		c.log.Info("Will try again", "node", name, "attempt", c.queue.NumRequeues(name)+1, "error", err.Error())
		c.queue.AddRateLimited(name)
		return true
	}
	c.queue.Forget(name)
	return true
}

// reconcile corrects the label of one node. It decides by the content of the copies, whatever the
// event was.
func (c *controller) reconcile(ctx context.Context, name string) error {
	node, ok := c.nodes.Get(name)
	if !ok {
		return nil // its label has gone with it
	}
	count := strconv.Itoa(byNode.Len(c.pods.Snapshot(), name))
	if node.Labels[label] == count {
		return nil
	}
	// Applying to a name that is gone would make a new node: with the UID it is a conflict. Force,
	// since the label belongs to this controller alone.
	wanted := applycorev1.Node(name).WithUID(node.UID).WithLabels(map[string]string{label: count})
	applied, err := c.client.CoreV1().Nodes().Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return err
	}
	c.counts.applies.Inc()
	c.printing.Lock()
	fmt.Fprintf(c.stdout, "%s pods=%s\n", name, count)
	c.printing.Unlock()
	// Read your own writes: the next look at this node must not decide by an older state.
	ctx, cancel := context.WithTimeout(ctx, ownWrite)
	defer cancel()
	return c.nodes.WaitFor(ctx, applied)
}
