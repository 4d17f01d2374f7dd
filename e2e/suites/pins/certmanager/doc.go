// Package certmanager pins the version of cert-manager whose tests run on ours. pins.go names the packages,
// for go.mod; no build has its tag.
package certmanager
