// Package fidelity sends one table of requests to a real API server and to package apiserver, and
// compares the answers. The table is testdata/cases.txt: a case is a line. A known difference is a
// line with its reason, and docs/fake.md is made from those lines.
//
// testdata/kubectl.txt is the same for commands of kubectl, which the go command builds in the API
// server's release.
//
// testdata/clients has a script for each client of another language: Debian's python3-kubernetes,
// and the JavaScript client, which npm installs. A client that cannot be had is skipped.
//
// Requests that are generated look for what the table does not have.
//
//	go test -C e2e -run TestAnswersAreThoseOfTheAPIServer ./fidelity
//	go test -C e2e -run TestKubectlSeesNoDifference ./fidelity
//	go test -C e2e -run TestForeignClients ./fidelity
//	go test -C e2e -run TestThePageIsTheTable ./fidelity -update   # writes docs/fake.md
package fidelity
