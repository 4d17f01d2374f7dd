// Package listwatch reads a Kubernetes collection: all of it (LIST), and its changes (WATCH).
//
//	pods := listwatch.FromClient[corev1.Pod](clientset.CoreV1().RESTClient(), "pods",
//		listwatch.Fields(fields.OneTermEqualSelector("spec.nodeName", node)))
//
// A reflector reads a [ListerWatcher]. Most programs make one with [FromClient]. The package has
// three more doors: [FromFuncs] for a typed client's List and Watch methods, and [FromClientGo] and
// [ToClientGo] for code written against client-go's cache package. [Project] keeps the parts of
// each object that a program needs, and [ListWatch.Encoded] the bytes, for a store that packs them.
//
// # Guarantees
//
//  1. A LIST is decoded object by object while its body arrives; the body is never held whole. It
//     ends without an error only if the body was complete. A body that was cut short, or is no
//     list, is never a shorter collection. Up to three other goroutines decode, and one reads.
//     They have ended before the loop ends. Objects keep their order, and none that has arrived
//     waits for a read.
//  2. A WATCH is read by the goroutine that ranges over it: no goroutine, no channel, no copy per
//     event. Protobuf events that have already arrived are decoded by up to four goroutines at
//     once. These have ended before the next read, and before the loop ends.
//  3. The encoding follows from the answer, not from the request, since servers may choose either.
//     Typed objects have no apiVersion and kind, as from a typed clientset;
//     *unstructured.Unstructured and *metav1.PartialObjectMetadata keep them.
//  4. An error from the server is an apierrors.StatusError, wherever in the exchange it came. An
//     object that cannot be decoded, is of another kind or has no name, is a [DecodeError]. It
//     costs only itself: the sequence goes on.
//  5. No error of [FromClient] has a response body, a header or a value from an object: names and
//     kinds at most. Errors of the functions behind [FromFuncs] and [FromClientGo] are passed on.
//     Texts of a Status are cut to 512 bytes, everywhere. An error answer's body is read up to 64
//     KiB if the client is a *rest.RESTClient: no other rest.Interface shows its transport.
//     Functions read such bodies themselves.
//  6. Parts that are equal on the wire are decoded once. So objects of [FromClient] share memory,
//     and are read-only. They are deeply equal to client-go's decoding of the same bytes; nothing
//     is dropped. [WithoutSharing] turns sharing off, and [WithMutationDetector] finds writers in
//     tests.
//  7. A program may write into an object that leaves through [ToClientGo], and into the argument of
//     [Project]'s function: both are copies, unless the program says [ReadOnly]. A forbidden write
//     shows in every object that shares the part, in any collection of the resource over the same
//     client, and in none over another client. The next list of a reader with [ListWatch.Holding],
//     as every reflector is, ends that: no object decoded after it has the write. Without such a
//     reader the write stays while a source is in use. [Unshared] reads what the server sends.
//  8. Secrets share nothing, in whatever form they are read, so nothing of a deleted Secret is
//     remembered. A watch keeps at most 16 bytes of its last one between two events.
//  9. A stream holds one object at a time, and up to 256 KiB of bytes behind it. With several
//     cores, a LIST also holds up to 1.2 MiB that are being decoded. An object of more than 32 MiB
//     ends the stream. A false length costs no memory.
//
// # Cost
//
// Three quarters of a list of pods equal earlier parts, and its objects take some 7.4 KB each
// instead of 25.8 (docs/makers/benchmarks.md). [ListWatch.Sharing] gives the figures for a
// collection. The memo takes 50 bytes per distinct part.
//
// The memory beside living objects is bounded:
//
//   - Remembered parts have at most 4 KiB each. All collections of a resource in a process remember
//     them together, until the last source is freed: at most a quarter of their bytes on the wire,
//     or 512 KiB if that is more, and never more than 256 MiB.
//   - Each of the last 32,768 objects that changed and were not deleted takes up to 1 KiB.
//
// A reader with [ListWatch.Holding], as every reflector is, pays some 100 bytes per object for its
// digest.
//
// # Limits
//
// This package retries nothing and remembers no state of the collection between calls: the
// reflector does. Lists obey the rate limiter of their REST client (QPS, Burst). Watches and watch
// lists pass it by, as client-go's watches do. A rest.Config with a Timeout ends every watch after
// that time, and the error says so. Package connection keeps watches from waiting behind writes.
//
// How to read a custom resource: docs/howto/crd.md; with less memory: docs/howto/least-memory.md.
package listwatch
