// Package prom shows informers to Prometheus: how far their handlers are behind, and by reflector/prom their copies.
//
//	metrics, err := prom.New(prometheus.DefaultRegisterer)
//	pods := informer.New(source, metrics.Option("pods"))
//	defer metrics.Track("pods", pods)()
//
// The label "informer" is the name that the program gives, or the copy's name in a set; "handler" is the name of
// [informer.WithName], and "unnamed" for all handlers without one, so that handlers which come and go make no new series.
// Handlers of one name are shown as one: the greatest lag, the sum of counts. No other labels exist. Everything is read
// from Status at each scrape, so that a handler that hangs shows, and the series of one that is removed are gone.
//
//	| metric                                      | type    | labels            | what it says                                     |
//	|---------------------------------------------|---------|-------------------|--------------------------------------------------|
//	| tributary_informer_objects                  | gauge   | informer          | objects held                                     |
//	| tributary_informer_drift_objects            | gauge   | informer          | what the last verification found, once there is one |
//	| tributary_informer_handlers                 | gauge   | informer, handler | handlers of this name                            |
//	| tributary_informer_handler_synced           | gauge   | informer, handler | 1 once they have returned from their initial lists |
//	| tributary_informer_handler_lag_events       | gauge   | informer, handler | changes not returned from yet                    |
//	| tributary_informer_handler_lag_seconds      | gauge   | informer, handler | for how long the oldest of them has waited       |
//	| tributary_informer_handler_events_total     | counter | informer, handler | events told, in whole batches                    |
//	| tributary_informer_handler_differences_total| counter | informer, handler | how often one fell behind the ring               |
//	| tributary_informer_handlers_failed          | gauge   | informer, handler | handlers that have ended with a panic            |
//
// A handler in trouble is one whose lag_seconds grows. Both counters are those of the handlers that there are: they fall when
// one of several of a name is removed, which rate and increase take for a restart.
//
// [Metrics.Track] and [Metrics.TrackSet] show the reflectors, too, under the same names in the series of reflector/prom that are
// read from Status. What those count as lists and watches end is counted by [Metrics.Option]; for all copies of a set, under one name.
package prom
