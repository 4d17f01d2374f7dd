// The command caches measures controllerruntime.NewCache beside controller-runtime's own cache, and
// prints tables.
//
//	go run -C bench ./interop/caches            # 50,000 pods: some five minutes
//	go run -C bench ./interop/caches -quick     # small, for CI
//	go run -C bench ./interop/caches -only Secrets # of 33,493 Secrets 50, by name: a minute
//	go run -C bench ./interop/caches -kubeconfig ~/.kube/config # the pods of your own cluster
//
// A server in this process sends prepared bytes as a watch list. Each row is a fresh process with
// one cache, by turns. Both caches have the same settings of the garbage collector, and the best
// options of controller-runtime: typed pods in protobuf, and managedFields stripped. The trimmed
// row has a transform that keeps what a controller reads of pods that it follows. The fake API
// server in this process has the Secrets.
package main
