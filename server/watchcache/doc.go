// Package watchcache is a collection that remembers its last changes, so that any number of
// watchers can follow it.
//
// It is the core of Tributary's server half, which has three rooms:
//
//   - watchcache: the [Cache], its window of changes, and its watchers. A [Resource] describes a
//     collection.
//   - [github.com/tributary-go/tributary/server/collection]: the write rules of an API server,
//     over a cache.
//   - [github.com/tributary-go/tributary/server/apiserver]: the HTTP edge, for kubectl,
//     client-go and every other Kubernetes client.
//
// A cache is a [store.Store], so that a reflector fills it, and a [listwatch.ListerWatcher], so
// that another reflector, an informer or a test reads it:
//
//	pods, err := watchcache.NewCache(watchcache.Pods())
//	if err != nil { … }
//	r := reflector.New(listwatch.FromClient[corev1.Pod](client, "pods"), pods)
//	ended := make(chan error, 1)
//	go func() { ended <- r.Run(ctx) }()
//	for event, err := range pods.Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=node-1"}) { … }
//	return <-ended // Run's error; nil at the end of ctx
//
// # Guarantees
//
// They hold for 100,000 watchers of as many selections. TestAHundredThousandWatchers shows it of 1,
// 2, 3, 5, 6 and 8, and the tests of 4, 7 and 9 have as many watchers beside them.
//
//  1. A watcher sees every change after its position, once, in order, or gets one error and ends:
//     410 Expired once it has fallen out of the window (TestStreamsAreTheHistory). The window is
//     bounded in events, bytes and age ([WithWindow], [WithWindowBytes];
//     TestWindowFollowsTheRate, TestLargeObjectsInTwoFormats).
//  2. The events of a watcher, applied in order, are the state that its selectors keep. An object
//     that stops to match is Deleted, an object that starts to match is Added
//     (TestWatchersReplicateTheState).
//  3. A list is a snapshot, complete up to the resource version that it names. A watch from that
//     version has no gap. Further pages show the same snapshot, or are a 410
//     (TestExactListsAreThePast, TestPages).
//  4. A slow reader, be it a list or a watcher, never holds up a writer nor another reader
//     (TestStuckReadersHoldUpNobody). Over HTTP its watch ends (TestSlowClientIsCut).
//  5. A write costs nothing for watchers of another value: of a name, a namespace, a field or a
//     label (TestAWriteCostsNothingForTheWatchersOfOtherValues).
//  6. From its first event on, a watcher is not cut for changes that its selection does not see,
//     whatever that asks for (TestNobodyIsCutForTheChangesOfOthers,
//     TestNobodyIsCutForValuesThatOthersShare). It is cut for more changes of its own than a window
//     holds (TestASlowWatcherIsCutForItsOwnChanges), or than its share of the bytes that slow
//     watchers may keep, their lists of unread changes included
//     (TestTheBacklogOfOneIsNotTheLossOfAnother, TestListsOfSlowWatchersAreBounded). No more are
//     cut than these bytes ask for (TestNoMoreAreCutThanTheBytesAskFor).
//  7. With [WithUpstream], a read that names no version shows every write that the upstream had
//     made before (TestReadsWithoutAVersionAreProvenFresh), and the version of another collection
//     needs no event (TestComparedStatesAreTheTruth). Without, it shows the present copy.
//     [Cache.Proof] tells which, and since when the upstream fails to answer
//     (TestProofTellsOfItsFailure).
//  8. A watcher that has ended leaves nothing behind (TestWatchersLeaveNothingBehind,
//     TestVisitsLeaveNothingBehind), and takes nothing from others (TestAParkedWatcherIsClosed).
//  9. Caches that follow one origin may share clients. A watch that moves from one cache to another
//     loses nothing, or is a 410 (TestClientsMoveBetweenCaches).
//  10. With a [Journal], window and content outlive the process, killed or not. A watch goes on
//     from its version in the next process, without a list (TestAJournalIsTheHistory,
//     TestARestartIsInvisible).
//
// # Limits
//
// Deliveries to different watchers are not ordered among each other. Events are not merged: a
// watcher sees each version of an object. A [Cache.Replace] leaves a gap, since the states that it
// skipped are unknown: lists and watches at versions in the gap are a 410. A watcher is told the
// changes of the gap, unless it sees several and one of them is a loss: then it gets a 410.
//
// # How events find their watchers
//
// The watchers of one selection wait in one lane. A selection that asks for values by equality is
// found by the rarest of them. A write looks up the values of its object, before and after, and
// wakes the watchers of those lanes. If a selection asks for more than the value, the write matches
// it first, once for all of its watchers. Every write matches a selection without an equality, such
// as spec.nodeName!=a.
//
// # Cost
//
// The window keeps the old version of each object that it has a change of, and the encodings that
// readers asked for, within [WithWindowBytes]. A waiting watcher costs 2 KB and a stack of 4 KB.
// While it reads events, it has 1 KB more, or 15 KB for a burst.
//
// Lists and initial events of the whole collection share the order of a state, at eight bytes per
// object, and its encodings, within [WithListBytes] (TestListsShareEncodings). The next state takes
// over the unchanged parts. Nothing is kept without a reader. A list of one namespace or of one
// value of an indexed field reads and sorts the objects of that value alone
// (TestAListReadsWhatItSelectsAlone). An exact list, and each page behind the first, undoes the
// changes since its version. That sorts nothing either, while a writer is at work.
package watchcache
