// Package e2e proves the reflector against a real API server and etcd, and against the faults that
// a list-watch meets in a cluster's life. It holds nothing but tests; see README.md for what each
// one shows and how long it takes.
package e2e
