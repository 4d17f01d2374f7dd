// Package join shows several collections at one instant, and tells once when any of them has
// changed.
//
//	var cluster join.View
//	nodes, pods := join.Add(&cluster, nodeInformer), join.Add(&cluster, podInformer)
//	ended := make(chan error, 2)
//	go func() { ended <- nodeInformer.Run(ctx) }()
//	go func() { ended <- podInformer.Run(ctx) }()
//	err := cluster.Run(ctx, func(now join.Moment) {
//		for name := range nodes.In(now).All() {
//			fmt.Println(name, "has", byNode.Len(pods.In(now), name), "pods")
//		}
//	})
//	stop() // of ctx: a collection that has ended does not end the other
//	return errors.Join(err, <-ended, <-ended)
//
// # Guarantees
//
//  1. There was an instant at which the store of each collection had the content that a [Moment]
//     shows. A moment never changes. Each moment is at least as new, in each collection, as the one
//     before.
//  2. The first moment comes once all collections are synced.
//  3. Each later moment differs from the one before in at least one object. Every change is in a
//     moment; changes that come while the function runs are in one.
//
// # Limits
//
// The instant is one of this process. Each collection has a watch of its own, and the server
// promises no order between them: a pod may come before its node. The function must do with that,
// and is called again when the node comes.
//
// # Cost
//
// A moment takes two snapshots of each collection, and more while they are being written. A write
// after a snapshot copies the nodes of the store that it changes: see package store. A handler of
// each collection wakes the function, and queues nothing.
package join
