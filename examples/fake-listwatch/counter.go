package main

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// maxStaleness is how long the counter believes its copy without a proof by the server. That of a
// healthy copy is up to two minutes old.
const maxStaleness = 3 * time.Minute

// byNode finds pods by their node.
var byNode = store.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })

// counter knows how many pods each node has.
type counter struct {
	pods      *store.Indexer[*corev1.Pod]
	reflector *reflector.Reflector[*corev1.Pod]
}

func newCounter(source listwatch.ListerWatcher[*corev1.Pod], options ...reflector.Option) *counter {
	pods := store.NewIndexer(byNode)
	return &counter{pods, reflector.New(source, pods, options...)}
}

// run follows the pods until ctx ends.
func (c *counter) run(ctx context.Context) error { return c.reflector.Run(ctx) }

// count is the number of pods on a node. It fails while the number is not known: before the first
// list, and when the copy has not been proven for too long.
func (c *counter) count(node string) (int, error) {
	if err := c.reflector.Ready(maxStaleness); err != nil {
		return 0, err
	}
	return byNode.Len(c.pods.Snapshot(), node), nil
}
