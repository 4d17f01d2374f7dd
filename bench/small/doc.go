// The command small measures many small collections over one client, beside client-go, and prints
// tables.
//
//	go run -C bench ./small          # informers of 0 to 50,000 pods: some 18 minutes
//	go run -C bench ./small -quick   # small, for CI: every row once
//	go run -C bench ./small -only Secrets -counts 3 # one row
//	go run -C bench ./small -only "pods of" -informers 1 -counts 1,5,12 # one informer alone
//	go run -C bench ./small -only idle -repeat 1 -idle 4m # informers of which nothing changes
//	go run -C bench ./small -curve ../docs/makers/small.svg # the heap over 1 to 50,000 pods, as a picture
//
// A server in this process sends watch lists over HTTP/2. Each measurement is a fresh process, of
// one library or the other, by turns: informers with one handler each, and nothing that happens
// after their first state. Their heap is the live heap beyond that of the process with its client.
package main
