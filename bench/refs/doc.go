// The command refs measures objects by reference, beside client-go's informer, and prints tables.
//
//	go run -C bench ./refs                 # 33,493 Secrets of 10 KB, 10,000 names: some five minutes
//	go run -C bench ./refs -quick          # small, for CI: every row once
//	go run -C bench ./refs -only names     # one table
//
// The API server is [apiserver.Server] in a process of its own, over TLS and HTTP/2 with 100
// streams a connection, as kube-apiserver has it. Each row is a fresh process. The first table has
// the cost of a name without its object: the objects do not exist. The second has a program that
// refers to 50 of all Secrets, and the last one a program that looks up one Node. docs/refs.md says
// how it is measured.
package main
