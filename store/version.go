package store

import "k8s.io/apimachinery/pkg/util/resourceversion"

// CompareVersions orders two resource versions of one resource on one server. order is negative if
// a is older than b, zero if they are equal, and positive if a is newer. Versions of two resources,
// or of two servers, have no order: the result means nothing.
//
// comparable is false, and order is zero, if either version is not a positive decimal number
// without leading zeros. Kubernetes promises such numbers since 1.35 (KEP-5504); aggregated API
// servers need not have them. Empty versions and "0" name no state and are not comparable.
func CompareVersions(a, b string) (order int, comparable bool) {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}
