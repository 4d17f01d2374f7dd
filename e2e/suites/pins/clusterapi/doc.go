// Package clusterapi pins the version of Cluster API whose tests run on ours. pins.go names the
// packages, for go.mod; no build has its tag.
package clusterapi
