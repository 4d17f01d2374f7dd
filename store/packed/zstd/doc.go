// Package zstd has stores at rest (package packed) that code texts: objects that have no sibling,
// such as ConfigMaps of configuration. They take half as much as in a packed store without it.
//
//	configs := informer.New(source, informer.WithStore(zstd.New[corev1.ConfigMap]))
//
// The code is Zstandard with a dictionary of whole samples of the store's first objects, learned
// once in under a millisecond. Objects that have siblings are kept as their difference from one, as
// ever.
//
// # Guarantees
//
//  1. A store is one of package packed in all else: its objects come back as they came
//     (TestTextsComeBack).
//  2. Nothing is learned from Secrets, and no coder has one's bytes (TestSecretsAreNotCoded).
//  3. Coders are freed when a store has rested for a while: it keeps 64 KiB of dictionary at most
//     (TestARestingStoreHasNoCoder).
//
// # Cost
//
// ConfigMaps of 20 KB, each of other settings (docs/makers/benchmarks.md): 0.34 of client-go's
// heap, and 0.64 without the code. Nodes of 50 images take 2.1 KB each, and 5.3 without it. A write
// takes 100 us more than an interned one, and a read that is not hot takes 65. While a store
// writes, its coder takes a MiB. So it is worth it for texts that seldom change.
package zstd
