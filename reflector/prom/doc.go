// Package prom shows reflectors to Prometheus.
//
//	metrics, err := prom.New(prometheus.DefaultRegisterer)
//	r := reflector.New(source, st, metrics.Option("pods"))
//	defer metrics.Track("pods", r)()
//
// The label "reflector" is the name that the program gives; "class" and "cause" are the texts of [reflector.Class]; "kind"
// is "list" or "watchlist". No other labels exist, and all series of a name are gone when Track's result is called.
//
//	| metric                                             | type      | labels                       | what it says                        |
//	|----------------------------------------------------|-----------|------------------------------|-------------------------------------|
//	| tributary_reflector_lists_total                    | counter   | reflector, kind, cause, class| lists, why made and how ended       |
//	| tributary_reflector_list_duration_seconds          | histogram | reflector, kind              | how long a list took                |
//	| tributary_reflector_items_per_list                 | histogram | reflector                    | objects per completed list          |
//	| tributary_reflector_watches_total                  | counter   | reflector, class             | watches and how they ended          |
//	| tributary_reflector_watch_duration_seconds         | histogram | reflector                    | how long a watch lasted             |
//	| tributary_reflector_items_per_watch                | histogram | reflector                    | events per watch                    |
//	| tributary_reflector_synced                         | gauge     | reflector                    | 1 once the store held a whole state |
//	| tributary_reflector_last_contact_timestamp_seconds | gauge     | reflector                    | when the server was last heard      |
//	| tributary_reflector_last_event_timestamp_seconds   | gauge     | reflector                    | when the last object or event came  |
//	| tributary_reflector_last_progress_timestamp_seconds| gauge     | reflector                    | when the resource version last moved|
//	| tributary_reflector_may_be_old                     | gauge     | reflector                    | 1 while a first state from a cache is not proven |
//	| tributary_reflector_retry_timestamp_seconds        | gauge     | reflector                    | when the next request is made, while one waits   |
//	| tributary_reflector_failing                        | gauge     | reflector, class             | 1 while something is wrong          |
//	| tributary_reflector_skipped_objects_total          | counter   | reflector                    | what could not be decoded or stored |
//	| tributary_reflector_unplaced_events_total          | counter   | reflector                    | events whose version did not fit    |
//	| tributary_reflector_events_total                   | counter   | reflector                    | events received                     |
//
// time() - tributary_reflector_last_contact_timestamp_seconds is how long the server has not been heard; a healthy one keeps
// that below about a minute. The same with last_progress is how long the copy has stood still, which also happens where
// nobody writes: package reflector says under Freshness from when on it means a server that is cut off from etcd.
package prom
