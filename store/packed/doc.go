// Package packed has a store that keeps its objects as packed bytes: a thirtieth of the heap of
// client-go's, for programs that hold much and read little of it.
//
//	pods := packed.New[corev1.Pod](store.ByNamespace[*corev1.Pod]())
//	err := reflector.New(source.Encoded(), pods.Encoded()).Run(ctx) // until ctx ends
//	// …
//	pod, ok := pods.Get("default/web-0")
//
// An object is kept as its difference from a sibling. [Store.Encoded] takes bytes as they come from
// the server: they are checked, and decoded when they are read. A Store also takes objects, which
// it encodes.
//
// # Guarantees
//
//  1. A [Store] keeps the promises of a [store.Store] and of a [store.Snapshotter]: its snapshots
//     never change, one is O(1), and [store.Diff], indexes and selections agree with them
//     (TestConformance, TestPackedIsAnIndexer).
//  2. An object that is read is deeply equal to the decoding of its bytes (TestBytesAreFollowed).
//     An object that was written decoded comes back deeply equal if it was decoded from protobuf,
//     or is a tree (TestEveryTypeOfTheScheme). Others lose the parts that no encoding carries: an
//     empty list or map becomes nil, and a time has seconds.
//  3. [Store.Read] decodes into the caller's own object, which shares nothing
//     (TestReadIsTheCallers). Objects of all other calls are read-only.
//  4. Bytes are decoded on arrival only if an index asks for the object, or if just decoding can
//     tell whether they decode (TestTheUsualIsNotDecoded, TestLabelsAreReadOffTheWire,
//     TestFieldsAreReadOffTheWire). An object that decoding refuses is refused on arrival, so that
//     every object of the store can be read (TestEncodedIsWhatIsDecoded and FuzzEncoded of package
//     listwatch). Bytes that the store holds are not read again (TestHeldBytesAreNotRead).
//  5. Readers take no lock and never wait for a list (TestReadersBesideAWriter).
//  6. The objects of [Store.Get] stay decoded while they are hot, within one bound of bytes for the
//     process, [SetHot]. Snapshots, indexes and Diff use hot objects, and add none
//     (TestHotIsBounded).
//  7. An object that cannot be encoded is an error that names it, and costs nothing else
//     (TestErrorsNameTheObject).
//  8. Nothing is learned from Secrets: each is kept in its own bytes alone, and nothing of a
//     deleted one is remembered (TestNothingIsLearnedFromSecrets, TestSecretsOfAnyFormAreFleeting,
//     TestTheMemoryOfBytesIsGivenBack, TestNoDumpHasADeletedSecret). [Store.LearnNothing] does so
//     for others.
//
// # Differences from an Indexer
//
// Two reads may return two pointers for one state: compare UID and resource version, or keep the
// object. A read of an object that is not hot decodes it, which allocates, and takes tens of
// microseconds for a pod. An index with a function has each object decoded that comes, and the old
// object if that may have had other values. [store.ByNamespace], [store.ByLabel] and
// [store.ByField] have none.
//
// The store is worth it where many objects are held and few are read whole: by key, by reference,
// or rarely. It is wrong for programs that list by index or range over all objects in their loop:
// each such read decodes each object.
//
// # Cost
//
// 50,000 pods of 8.2 KB, 50 of an owner, through a reflector (docs/makers/benchmarks.md has more):
//
//	                              packed   interned   client-go
//	live heap, B per pod             618      7,523      25,792
//	peak of the first sync, B        886      7,587      36,780
//	first sync, CPU us per pod        18         35         122
//	a garbage collection, CPU ms      17        435       1,266
//	heap objects per pod             3.3         40         255
//	Get, cold, us                     27        0.4         0.3
//	Get, hot, us                    0.03       0.02        0.02
//	all pods, us per pod              39       0.05         0.1
//
// # Limits
//
// Objects pack well that resemble each other: pods of an owner, custom resources. Of texts without
// a sibling, such as those of ConfigMaps, just the letters are coded, unless the store has a codec
// ([Store.CodeTexts]).
//
// How to choose between the forms of a copy: docs/howto/least-memory.md.
package packed
