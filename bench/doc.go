// The command bench measures Tributary beside client-go and prints a table.
//
//	go run -C bench .            # 50,000 pods: some 15 minutes on two cores
//	go run -C bench . -quick     # small, for CI: every measurement once
//
// A server in a process of its own sends prepared bytes over HTTP. Each measurement is a fresh
// process that reads them, of one library or the other, by turns, with the same settings of the
// garbage collector; the table has medians. The tables of informers and stores have no server: what
// is measured there begins with objects that are decoded. What is asked and how it is measured is
// in docs/makers/benchmarks.md.
package main
