// Package gatekeeper pins the version of Gatekeeper whose tests run on ours. pins.go names the
// packages, for go.mod; no build has its tag.
package gatekeeper
