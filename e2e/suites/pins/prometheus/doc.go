// Package prometheus pins the version of Prometheus whose tests run on ours. pins.go names the
// packages, for go.mod; no build has its tag.
package prometheus
