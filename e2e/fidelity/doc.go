// Package fidelity sends one table of requests to a real API server and to package apiserver, and
// compares the answers. The table is testdata/cases.txt: a case is a line. A known difference is a
// line with its reason, and docs/fake.md is made from those lines.
//
// testdata/kubectl.txt is the same for commands of kubectl, which the go command builds in the API
// server's release.
//
// Requests that are generated look for what the table does not have.
//
//	go test -C e2e -run TestAnswersAreThoseOfTheAPIServer ./fidelity
//	go test -C e2e -run TestKubectlSeesNoDifference ./fidelity
//	go test -C e2e -run TestThePageIsTheTable ./fidelity -update   # writes docs/fake.md
package fidelity
