// Package certmanager pins the version of cert-manager whose tests run on ours. pins.go names the
// packages, for go.mod. Its tag is set by TestCertificateMemory alone.
package certmanager
