// Package controller is the loop of a controller: it calls a function for each key that a change
// concerns, until the function says that all is well.
//
//	err := controller.Run(ctx, reconcile, controller.For(nodes), controller.From(pods, nodesOf))
//
// README.md is its specification, with numbered guarantees. A [Controller] has more fields, such as
// copies that it runs itself, workers and a checkpoint.
//
// How to write one: examples/controllers; how to read its own writes: docs/howto/own-writes.md.
package controller
