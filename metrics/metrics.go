// Package metrics has the numbers that copies report about themselves, in the terms of no metrics
// system. Reflectors, informers, leases, unions, sets, sources and references by name are
// [Reporter]s. Package prom shows them to Prometheus; any other system needs one loop over
// [Reporter.Samples].
package metrics

import "iter"

// Reporter is anything that reports numbers.
type Reporter interface {
	// Samples yields the numbers of this moment. The name stands for the reporter in label values;
	// a set uses the names of its copies instead. It blocks for no longer than it takes to read a
	// Status, and is safe for concurrent use.
	Samples(name string) iter.Seq[Sample]
}

// Explainer is a [Reporter] that can explain its problems in words. All reporters of this library
// can.
type Explainer interface {
	// Causes yields the errors of this moment, each with the name that its samples have. Errors
	// have no content of objects. It is as cheap and as safe as Samples.
	Causes(name string) iter.Seq2[string, error]
}

// Follower is a [Reporter] that can tell its changes. Reflectors of a store with snapshots,
// informers, unions, sets, sources, watch caches and their servers are.
type Follower interface {
	// Follow begins at the present state. Each call of the result yields the objects that have
	// changed since the call before, each of them once, in no particular order; name is as in
	// Samples. Between calls it costs the collection nothing, and keeps the old state. One
	// goroutine may call it.
	Follow(name string) (changes func() iter.Seq[Change])
}

// Change is one object that has changed.
type Change struct {
	// Copy is the name that the samples of the object's copy have.
	Copy string
	// Resource is the object's plural and group, such as "secrets" or "deployments.apps"; empty if
	// the copy does not know it. It tells what the Go type of a projection does not.
	Resource string
	// Key is the namespace, a slash and the name; or the name alone.
	Key string
	// Old and New are the states of the object, nil if it is not there. They are shared and
	// read-only.
	Old, New any
}

// Metric is a number with a name.
type Metric struct {
	// Name is in the style of Prometheus, such as "tributary_reflector_synced".
	Name string
	// Help is one sentence.
	Help string
	// Counter: the number only grows, but for restarts. Otherwise it is a gauge.
	Counter bool
	// Labels are the names of the labels. Their values are bounded in number.
	Labels []string
}

// Sample is a metric's value at one moment.
type Sample struct {
	Metric *Metric
	Labels []string // the values, in the order of Metric.Labels
	Value  float64
}
