// Package packed has a store that keeps its objects as packed bytes: a thirtieth of the heap of
// client-go's, for programs that hold much and read little of it.
//
//	pods := packed.New[corev1.Pod](byNode)
//	err := reflector.New(source, pods).Run(ctx) // until ctx ends
//	// …
//	pod, ok := pods.Get("default/web-0")
//
// An object is kept as its difference from a sibling, and decoded when it is read.
//
// # Guarantees
//
//  1. A [Store] keeps the promises of a [store.Store] and of a [store.Snapshotter]: its snapshots
//     never change, one is O(1), and [store.Diff], indexes and selections agree with them
//     (TestConformance, TestPackedIsAnIndexer).
//  2. An object that is read is deeply equal to the one that was written, for each type of the
//     scheme and for trees, if that was decoded from a server's bytes (TestEveryTypeOfTheScheme).
//     What an encoding cannot carry is lost of others: an empty list or map becomes nil, and a time
//     has seconds.
//  3. [Store.Read] decodes into the caller's own object, which shares nothing
//     (TestReadIsTheCallers). Objects of all other calls are read-only.
//  4. Readers take no lock and never wait for a list (TestReadersBesideAWriter).
//  5. The objects of [Store.Get] stay decoded while they are hot, within one bound of bytes for the
//     process, [SetHot]. Snapshots, indexes and Diff use hot objects, and add none
//     (TestHotIsBounded).
//  6. An object that cannot be encoded is an error that names it, and costs nothing else
//     (TestErrorsNameTheObject).
//  7. Nothing is learned from Secrets: each is kept in its own bytes alone, and nothing of a deleted
//     one is remembered (TestNothingIsLearnedFromSecrets). [Store.LearnNothing] does so for others.
//
// # What differs from an Indexer
//
// Two reads may return two pointers for one state: compare UID and resource version, or keep the
// object. A read of an object that is not hot decodes it, which allocates, and takes tens of
// microseconds for a pod. An index calls its function for each object that comes, and decodes the
// old object if that may have had other values.
//
// The store is worth it where many objects are held and few are read whole: by key, by reference, or
// rarely. It is wrong for programs that list by index or range over all objects in their loop: each
// such read decodes each object.
//
// # Limits
//
// Objects pack well that resemble each other: pods of an owner, custom resources. Texts of their own,
// such as those of ConfigMaps, are kept as they are.
package packed
