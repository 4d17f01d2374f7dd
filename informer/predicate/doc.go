// Package predicate narrows the events of a handler.
//
//	h, err := deployments.AddHandler(predicate.Filter(isOurs,
//		predicate.Updates(enqueue.Keys(queue, ownKey), predicate.Generation, predicate.Labels)))
//
// [Filter] leaves out objects, and [Updates] leaves out updates that change nothing of interest.
// Filter goes outside: it must see every update to know which objects match. A selection that the
// server knows belongs in the list-watch (listwatch.Labels, listwatch.Fields): the other objects
// are then neither sent nor kept.
//
// In a loop over Informer.Events, an if statement does the same:
//
//	if e.Type == informer.Updated && !predicate.Generation(e.Old, e.New) {
//		continue
//	}
package predicate
