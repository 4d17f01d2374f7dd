// Package undelta has the store that pushes the full state to a function, once per change: the
// UndeltaStore.
//
//	pods := undelta.New(func(now store.Snapshot[*corev1.Pod]) { agent.Apply(now) })
//	err := reflector.New(source, pods).Run(ctx) // until ctx ends
//
// # Guarantees
//
//  1. Each successful Add, Update, Delete and Replace causes exactly one push, and the pushed state
//     contains it. A failed one causes none, and neither does a bookmark.
//  2. Pushes come one at a time, in the order of the changes; the last one pushed is the state that
//     the store holds.
//  3. A push costs O(1): the state is a snapshot. A receiver that wants a slice makes one with
//     Snapshot.Sorted.
//  4. Readers of [Store.Snapshot] never wait, not even for a push that takes long. Writers, such as
//     the reflector, wait for the push: that is the back-pressure.
//
// [Over] does the same for a store that keeps its objects at rest, as packed bytes: it is worth it
// if a push reads few of them, since each read decodes one, into another object each time.
//
// How it compares with an informer: docs/faq.md; why it is cheap: docs/why-snapshots.md.
package undelta
