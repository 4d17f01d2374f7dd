// The command agents measures agents of a node, each with the pods of its node alone, beside
// client-go and beside polling, and prints tables.
//
//	go run -C bench ./agents          # a thousand agents, 30,000 pods: some ten minutes
//	go run -C bench ./agents -only bill -rate 20 # 1, 5 and 20 agents that share a node: four minutes
//	go run -C bench ./agents -quick   # small, for CI: every row once
//	go test -C bench ./agents -run TestAQuietDay -v # requests of a day on which nothing happens
//
// The API server is [apiserver.Server] in a process of its own, over loopback HTTP; the agents of a
// row share another one. The churn of an hour, 1 % of the pods a minute, is written as fast as a
// given rate permits, since a watch costs by its events and not by its age. Polls are measured over
// some rounds, and scaled to an hour. How it is measured is in docs/makers/benchmarks.md.
package main
