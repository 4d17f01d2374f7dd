// Package podapi knows what the API server of Kubernetes 1.36, with default feature gates, does to
// a v1 Pod before it stores it. It knows the defaults, and the pods that the server refuses.
//
// [Default] is the defaulting, together with the changes of a conversion to the internal type and
// back. [Validate] is the validation of a create request. [APIReference] finds the API objects that
// a static pod may not need.
//
// All three follow the server field by field, its oddities included: a rejection names the same
// field paths as the server's. They differ in one thing: no rejected value gets into an error,
// because manifests carry credentials.
//
// The functions keep no state, and are safe for concurrent use on different pods.
package podapi
