// Package listwatch reads a Kubernetes collection: all of it (LIST), and what changes after (WATCH).
//
//	pods := listwatch.FromClient[corev1.Pod](clientset.CoreV1().RESTClient(), "pods",
//		listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", node)))
//
// A [ListerWatcher] is what a reflector drives. Most programs make one with [FromClient] and hand it over; the
// package has three more doors: [FromFuncs] for a typed client's List and Watch methods, [FromClientGo] and
// [ToClientGo] for code written against client-go's cache package. [Project] keeps of each object what a program needs.
//
// # What is guaranteed
//
//  1. A LIST is decoded object by object while its body arrives; the body is never held whole. It ends without an
//     error only when all of it has come: a body that was cut short, or is no list, is never a shorter collection.
//  2. A WATCH is read by the goroutine that ranges over it: no goroutine, no channel, no copy per event. Protobuf events that
//     have come already are decoded by up to four goroutines at once, which have ended before the first of them is yielded.
//  3. Protobuf and JSON are told apart by what comes, not by what was asked for, since servers may answer either.
//     Typed objects come without apiVersion and kind, as from a typed clientset; *unstructured.Unstructured and
//     *metav1.PartialObjectMetadata keep them.
//  4. An error that the server sent is an apierrors.StatusError, wherever in the exchange it came. An object that
//     cannot be decoded, is of another kind or has no name, is a [DecodeError] and costs only itself: the sequence goes on.
//  5. No error of [FromClient] carries a response body, a header or a value from an object: names and kinds at most.
//     What the functions behind [FromFuncs] and [FromClientGo] put into their errors is passed on.
//     The texts of a Status are cut to 512 bytes, everywhere. Of the body of an error answer 64 KiB
//     are read, if the client is a *rest.RESTClient: no other rest.Interface shows its transport.
//     Functions read such bodies themselves.
//  6. What is equal on the wire is decoded once: objects of [FromClient] share memory with each other, and are read-only.
//     They are deeply equal to what client-go makes of the same bytes; nothing is dropped. [WithoutSharing] turns it off,
//     and [WithMutationDetector] finds in tests who writes into what is shared. What leaves through [ToClientGo], and what
//     the function of [Project] gets, is a copy: there a program may write, unless it says [ReadOnly].
//     A write against the rule shows in objects that share the part, but in none that is decoded after
//     the reader's next list. Secrets share nothing, in whatever form they are read, so that nothing of a
//     deleted Secret is remembered.
//  7. A stream holds one object at a time, and up to 256 KiB of what has come behind it. One of more than 32 MiB ends it, and a length that lies costs no memory.
//
// # Cost
//
// Of a list of pods three quarters are equal to what came before, and its objects take some 7.4 KB each in place of 25.8
// (docs/benchmarks.md). [ListWatch.Sharing] says how it is for a collection. Remembering takes 50 bytes per distinct part.
//
// What is remembered beside living objects is bounded: parts of at most 4 KiB each, which together stand for at most 16 MiB
// of wire, or a quarter of the largest LIST if that is more, and never more than 256 MiB; up to 1 KiB for each of the last
// 32,768 objects that changed and were not deleted; and for each of up to four goroutines that decode, the last object of at
// most 64 KiB. A reader with [ListWatch.Holding], as every reflector is, pays some 100 bytes per object for its digest.
//
// # What is not
//
// Nothing is retried here, and no state of the collection is remembered between calls: that is the reflector's part. Requests obey the
// rate limiter of the REST client they are made with. A rest.Config with a Timeout ends every watch after that time.
package listwatch
