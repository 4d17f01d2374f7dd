// Package podapi knows what the API server of a [Release] of Kubernetes, with default feature
// gates, does to a v1 Pod before it stores it; the kubelet does the same to a static pod. It knows
// the defaults, and the pods that are refused.
//
// [Release.Default] is the defaulting, together with the changes of a conversion to the internal
// type and back. [Release.Validate] is the validation of a create request. [APIReference] finds the
// API objects that a static pod may not need.
//
// All follow the server field by field, its oddities included: a rejection names the same field
// paths as the server's. They differ in two things: no rejected value gets into an error, because
// manifests carry credentials. And what makes a kubelet crash is refused.
//
// The table of newer fields has the fields that the releases do not share, by name: the k8s.io/api
// of the build may not have them. Their rules look at the pod in JSON, see [Release.NewerOf].
//
// The functions keep no state, and are safe for concurrent use on different pods.
package podapi
