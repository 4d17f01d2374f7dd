package controllerruntime

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/metrics"
)

// Bill is the cost of one kind in one form.
type Bill struct {
	// Name is that of [Cache.Status], such as "/v1, Kind=Pod, typed".
	Name string
	// Scope has the namespaces and the selectors.
	Scope string
	// StartedBy is the first call that asked for the kind: "get", "list", "informer" or "index".
	// Of a read, Caller is the function that made it.
	StartedBy, Caller string
	// Objects are held now.
	Objects int
	// ReceivedBytes is the size of all objects that have come, in lists and events, as they are on
	// the wire before compression.
	ReceivedBytes uint64
}

// Bill returns the cost of each collection, and of the objects of each lean kind. The one that has
// received the most is the first.
func (c *Cache) Bill() []Bill {
	var all []Bill
	for _, held := range c.all() {
		all = append(all, held.bill())
	}
	for _, held := range c.allNames() {
		all = append(all, held.bill())
	}
	slices.SortFunc(all, func(a, b Bill) int {
		return cmp.Or(cmp.Compare(b.ReceivedBytes, a.ReceivedBytes), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (c *collection) bill() Bill {
	s := c.copy.Status()
	return Bill{
		Name: c.kind.String(), Scope: c.scope(), StartedBy: string(c.by), Caller: c.caller,
		Objects: s.Objects, ReceivedBytes: s.Sharing.Bytes,
	}
}

func (n *names) bill() Bill {
	s := n.refs.Status()
	return Bill{
		Name: n.kind.String(), Scope: n.scope() + ", by name", StartedBy: string(byGet),
		Objects: s.Objects, ReceivedBytes: s.Bytes,
	}
}

// scope has the namespaces of a kind and their selectors, for people.
func (s shape) scope() string {
	var all []string
	for _, namespace := range slices.Sorted(maps.Keys(s.configs)) {
		config := s.configs[namespace]
		text := namespace
		switch {
		case s.root:
			text = "the cluster"
		case namespace == metav1.NamespaceAll && len(s.configs) > 1:
			text = "all other namespaces"
		case namespace == metav1.NamespaceAll:
			text = "all namespaces"
		}
		if config.LabelSelector != nil && !config.LabelSelector.Empty() {
			text += fmt.Sprintf(" with labels %q", config.LabelSelector)
		}
		if config.FieldSelector != nil && !config.FieldSelector.Empty() && len(s.configs) == 1 {
			text += fmt.Sprintf(" with fields %q", config.FieldSelector)
		}
		all = append(all, text)
	}
	if len(all) > maxScopes {
		all = append(all[:maxScopes], fmt.Sprintf("and %d more", len(all)-maxScopes))
	}
	return strings.Join(all, ", ")
}

// maxScopes bounds the namespaces that a line names.
const maxScopes = 10

// Samples implements [metrics.Reporter], for prom.Metrics.Track and the status page. Each kind
// reports under its own name, as in [Cache.Status].
func (c *Cache) Samples(string) iter.Seq[metrics.Sample] {
	var all []metrics.Sample
	for k, held := range c.all() {
		all = slices.AppendSeq(all, held.copy.Status().Samples(k.String()))
	}
	for _, held := range c.allNames() {
		all = slices.AppendSeq(all, held.refs.Samples(held.kind.String()))
	}
	return slices.Values(all)
}

// Causes implements [metrics.Explainer].
func (c *Cache) Causes(string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, s := range c.Status() {
			for name, cause := range s.Status.Causes(s.Name) {
				if !yield(name, cause) {
					return
				}
			}
		}
		for _, held := range c.allNames() {
			for name, cause := range held.refs.Causes(held.kind.String()) {
				if !yield(name, cause) {
					return
				}
			}
		}
	}
}

// Status returns the health of each collection, ordered by name. It does not block.
//
//	health := mgr.GetCache().(*controllerruntime.Cache).Status()
func (c *Cache) Status() []informer.CopyStatus {
	var all []informer.CopyStatus
	for k, held := range c.all() {
		all = append(all, informer.CopyStatus{Name: k.String(), Status: held.copy.Status()})
	}
	slices.SortFunc(all, func(a, b informer.CopyStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (c *Cache) all() map[kind]*collection {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.collections)
}

func (c *Cache) allNames() []*names {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.names))
}
