// Package prom shows reflectors, informers, unions, sets, the sources of pods, references by name,
// watch caches and their servers to Prometheus.
//
//	metrics, err := prom.New(prometheus.DefaultRegisterer)
//	pods := informer.New(source, informer.WithReflector(metrics.Option("pods")))
//	defer metrics.Track("pods", pods)()
//
// [Metrics.Track] shows everything that is a [github.com/tributary-go/tributary/metrics.Reporter],
// and [Metrics.TrackAll] several of them. They are read at each scrape: a handler that hangs shows,
// and the series of a removed one are gone. [Metrics.Option] counts lists and watches, as they end.
// All series of a name are gone when the result of Track is called.
//
// The labels "reflector", "informer", "sources" and "refs" are the name that the program gives, or
// the copy's name in a set. The reflector of a source is called by the names of both, such as
// "node-1/api". "class" and "cause" are the texts of [reflector.Class]; "kind" is "list" or
// "watchlist". "handler" is the name of informer.WithName, and "unnamed" for all handlers without a
// name. Handlers of one name are shown as one: the greatest lag, the sum of counts. "source" is the
// name of a source, and "op" is an operation of sources.PodUpdate. Sources of one name are shown as
// one, too. No other labels exist.
//
// The problem of a source has the text of the [reflector.Class] that means the same, or one of
// these: "changing" is a file that does not stop changing, "duplicate" a pod that another manifest
// declares already, "checkpoint" a checkpoint that cannot be read or written, "may_be_old" a state
// from a cache, "not_ready" a kubelet that has not read its own sources, "overdue" a required
// source that has not been read in time, and "ended" a source that has ended with an error. A
// warning is of the class "foreign", a file that is no manifest, or "unknown_field", a pod with
// fields that are dropped.
//
// tributary_reflector_not_right is 1 while Ready fails for another reason than the age of the
// proof, which is time() - tributary_reflector_proven_timestamp_seconds. The proof of a healthy
// copy is up to two minutes old. time() - last_contact is how long the server has not been heard,
// and proves nothing: a slow link or a proxy brings old news.
//
// A handler is in trouble if its lag_seconds grows, or if handler_synced stays 0: alert on both,
// the second by tributary_informer_handler_synced == 0. Until a handler is synced, its lag counts
// from the start of its initial list. The counters of handlers fall when one of several of a name
// is removed, which rate and increase take for a restart.
//
// All metrics: docs/reference/metrics.md. How to alert: docs/howto/alerts.md.
package prom
