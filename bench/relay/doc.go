// The command relay measures server/relay beside direct watches of its API server, and prints
// tables.
//
//	go run -C bench ./relay               # all tables: some half an hour on two cores
//	go run -C bench ./relay -quick        # small, for CI: every row once
//	go run -C bench ./relay -only bill    # one table: bill, idle, memory, latency or slow
//	go run -C bench ./relay -only memory -limit 450 # and with this GOMEMLIMIT
//	go test -C bench ./relay -run TestAQuietHour -v # requests of an hour on which nothing happens
//
// The upstream is [cluster.Cluster] in a process of its own, over TLS. It also answers reviews, and
// counts requests, connections and bytes. The relay is another process, and the clients live in
// this one; agents live in a third. The clocks of all are the machine's.
package main
