// Package watchlist tells watch lists from other requests, and knows how a source declares that it
// does not answer them.
package watchlist

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Asked reports whether a request asks for the state before the changes (KEP-3157).
func Asked(request metav1.ListOptions) bool {
	return request.SendInitialEvents != nil && *request.SendInitialEvents
}

// Supported reports whether source answers a watch list: a watch that sends the state first
// (KEP-3157). source is a listwatch.ListerWatcher, or client-go's cache.ListerWatcher. It supports
// watch lists unless its method IsWatchListSemanticsUnSupported() bool returns true. The name of
// the method is client-go's: its fakes have it.
func Supported(source any) bool {
	refuses, ok := source.(interface{ IsWatchListSemanticsUnSupported() bool })
	return !ok || !refuses.IsWatchListSemanticsUnSupported()
}

// ThenList reports whether a reflector asks for a LIST at once after a watch list has failed with
// err. Package reflector sets it.
var ThenList func(err error) bool
