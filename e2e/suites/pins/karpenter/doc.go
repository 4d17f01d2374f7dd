// Package karpenter pins the version of Karpenter whose tests run on ours. pins.go names the
// packages, for go.mod; no build has its tag.
package karpenter
