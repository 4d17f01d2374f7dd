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
//	| metric                                              | type      | labels                        | meaning                                   |
//	|-----------------------------------------------------|-----------|-------------------------------|-------------------------------------------|
//	| tributary_reflector_lists_total                     | counter   | reflector, kind, cause, class | lists, why made and how ended             |
//	| tributary_reflector_list_duration_seconds           | histogram | reflector, kind               | how long a list took                      |
//	| tributary_reflector_items_per_list                  | histogram | reflector                     | objects per completed list                |
//	| tributary_reflector_watches_total                   | counter   | reflector, class              | watches and how they ended                |
//	| tributary_reflector_watch_duration_seconds          | histogram | reflector                     | how long a watch lasted                   |
//	| tributary_reflector_items_per_watch                 | histogram | reflector                     | events per watch                          |
//	| tributary_reflector_synced                          | gauge     | reflector                     | 1 once the store held a whole state       |
//	| tributary_reflector_not_right                       | gauge     | reflector, class              | 1 while it is not right, by the reason    |
//	| tributary_reflector_proven_timestamp_seconds        | gauge     | reflector                     | of when the copy is proven                |
//	| tributary_reflector_unusable_objects                | gauge     | reflector                     | objects that are not decoded, or stored   |
//	| tributary_reflector_retry_timestamp_seconds         | gauge     | reflector                     | when the next request is made             |
//	| tributary_reflector_last_contact_timestamp_seconds  | gauge     | reflector                     | when the server was last heard            |
//	| tributary_reflector_last_event_timestamp_seconds    | gauge     | reflector                     | when the last object or event came        |
//	| tributary_reflector_last_progress_timestamp_seconds | gauge     | reflector                     | when the resource version last moved      |
//	| tributary_reflector_failing                         | gauge     | reflector, class              | 1 while something is wrong                |
//	| tributary_reflector_stale_objects                   | gauge     | reflector                     | objects kept in their last good state     |
//	| tributary_reflector_skipped_objects_total           | counter   | reflector                     | objects not decoded, or not stored        |
//	| tributary_reflector_unplaced_events_total           | counter   | reflector                     | events whose version did not fit          |
//	| tributary_reflector_events_total                    | counter   | reflector                     | events received                           |
//	| tributary_reflector_failing_since_timestamp_seconds | gauge     | reflector                     | since when something is wrong             |
//	| tributary_reflector_received_bytes_total            | counter   | reflector                     | bytes of objects, as on the wire          |
//	| tributary_reflector_shared_bytes_total              | counter   | reflector                     | bytes of them that were not decoded again |
//	| tributary_informer_objects                          | gauge     | informer                      | objects held                              |
//	| tributary_informer_drift_objects                    | gauge     | informer                      | objects wrong since the last verification |
//	| tributary_informer_handlers                         | gauge     | informer, handler             | handlers of this name                     |
//	| tributary_informer_handler_synced                   | gauge     | informer, handler             | 1 once they have their initial lists      |
//	| tributary_informer_handler_lag_events               | gauge     | informer, handler             | changes not returned from yet             |
//	| tributary_informer_handler_lag_seconds              | gauge     | informer, handler             | for how long the oldest of them waits     |
//	| tributary_informer_handler_events_total             | counter   | informer, handler             | events told, in whole batches             |
//	| tributary_informer_handler_differences_total        | counter   | informer, handler             | how often one fell behind the ring        |
//	| tributary_informer_handlers_failed                  | gauge     | informer, handler             | handlers that have ended with a panic     |
//	| tributary_sources_synced                            | gauge     | sources                       | 1 once each required source has been read |
//	| tributary_sources_seen                              | gauge     | sources, source               | 1 once its first state has been read      |
//	| tributary_sources_optional                          | gauge     | sources, source               | 1 if it is not needed for readiness       |
//	| tributary_sources_restored                          | gauge     | sources, source               | 1 while the state is a checkpoint's       |
//	| tributary_sources_not_right                         | gauge     | sources, source, class        | 1 while it is not right, by the reason    |
//	| tributary_sources_stale                             | gauge     | sources, source               | 1 while the proof is too old              |
//	| tributary_sources_incomplete                        | gauge     | sources, source               | 1 while a problem may hide a pod          |
//	| tributary_sources_doubted                           | gauge     | sources, source               | 1 while its answers prove nothing         |
//	| tributary_sources_proven_timestamp_seconds          | gauge     | sources, source               | when an answer was a proof last           |
//	| tributary_sources_problems                          | gauge     | sources, source, class        | present problems of a class               |
//	| tributary_sources_warnings                          | gauge     | sources, source, class        | present remarks that hide no pod          |
//	| tributary_sources_pods                              | gauge     | sources, source               | pods in the newest state                  |
//	| tributary_sources_skipped_files                     | gauge     | sources, source               | files ignored for their names             |
//	| tributary_sources_last_contact_timestamp_seconds    | gauge     | sources, source               | when it was last read or heard            |
//	| tributary_sources_last_set_timestamp_seconds        | gauge     | sources, source               | when it last set a state                  |
//	| tributary_sources_reader_pending_states             | gauge     | sources, source               | states that the reader has not read whole |
//	| tributary_sources_reader_lag_seconds                | gauge     | sources, source               | how long the oldest of them has waited    |
//	| tributary_sources_errors_total                      | counter   | sources, source               | faults of the source                      |
//	| tributary_sources_updates_total                     | counter   | sources, source, op           | updates that have been read               |
//	| tributary_refs_synced                               | gauge     | refs                          | 1 while each name has been read           |
//	| tributary_refs_names                                | gauge     | refs                          | names that have an owner                  |
//	| tributary_refs_owners                               | gauge     | refs                          | owners of names                           |
//	| tributary_refs_current_names                        | gauge     | refs                          | names that are followed, or never change  |
//	| tributary_refs_idle_names                           | gauge     | refs                          | names that nothing reads, not followed    |
//	| tributary_refs_not_right                            | gauge     | refs, class                   | names that are not right, by the reason   |
//	| tributary_refs_objects                              | gauge     | refs                          | objects held                              |
//	| tributary_refs_watches                              | gauge     | refs                          | watches, open or being opened             |
//	| tributary_refs_last_contact_timestamp_seconds       | gauge     | refs                          | when the quietest name was last heard of  |
//	| tributary_refs_events_total                         | counter   | refs                          | objects and changes received              |
//	| tributary_refs_received_bytes_total                 | counter   | refs                          | bytes of them, as on the wire             |
//	| tributary_controller_working                        | gauge     | controller                    | 1 while the loop works                    |
//	| tributary_controller_keys                           | gauge     | controller, lane              | keys that wait to be called               |
//	| tributary_controller_running                        | gauge     | controller                    | calls under way                           |
//	| tributary_controller_failing_keys                   | gauge     | controller                    | keys whose last call failed               |
//	| tributary_controller_oldest_seconds                 | gauge     | controller                    | how long the oldest key has waited        |
//	| tributary_controller_calls_total                    | counter   | controller, result            | calls: done, again, failed, panicked      |
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
// How to alert: docs/howto/alerts.md.
package prom
