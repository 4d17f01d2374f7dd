// Package podapi knows what the API server of Kubernetes 1.36 does to a v1 Pod between its bytes
// and its storage, with the feature gates at their defaults: which values it fills in, and which
// pods it refuses.
//
// [Default] is the defaulting, together with what the trip through the internal type changes.
// [Validate] is the validation of a create request. [APIReference] finds what a static pod may not
// point at. All three follow the server field by field, its oddities included: a rejection names
// the same field paths as the server's. They differ in one thing: no rejected value gets into an
// error, because manifests carry credentials.
//
// The functions keep no state and may be called from any number of goroutines, each with its own
// pod.
package podapi
