// Package robustness lets etcd's own judges decide about this project's readers. The judges are the
// validators of etcd's robustness tests (go.etcd.io/etcd/tests/v3, packages model, report and
// validate). They check what three readers were told: a reflector's source, a reflector's store and
// an informer's handlers. The servers are the fake, the watch cache over HTTP, and a real
// kube-apiserver on etcd that is killed, cut off, compacted and left behind.
//
// # How a Kubernetes history becomes one of etcd
//
// A resource version of the API server is a revision of etcd, which counts the writes to everything
// that etcd stores. The model wants a database with nothing but our collection. So revisions are
// renumbered: the collection's writes get 2, 3, 4, … in their order, and any other version becomes
// that of the last write at or before it. The order stays, and the state at a version stays the
// state at its number. So a bookmark that comes too early is still too early.
//
//   - A create, update or delete is a transaction on the version that it expects; 0 for a create.
//   - A write without an answer is an error: the model takes it for written and for not written. A
//     refusal (a conflict, an object that exists or does not) is left out. Had it been written,
//     there would be a version that no client wrote.
//   - A successful delete has no version in its answer. It gets that of the deletion, in the
//     server's own record, of the version that it expected.
//   - The persisted writes are the server's own record. For the API server, an independent client
//     of etcd reads them; for the others, each write is recorded as it is committed.
//   - A consistent LIST is a Range, with its times: porcupine must find a moment for it between
//     them.
//   - A stream begins with a state from a list, a watch list or Replace. That state is a Range at
//     its version. It may be of any time, since readers may ask for less than a consistent state,
//     but it must be whole.
//   - A watch is a watch from the version after the requested one, or after what the reader had
//     been told if that is older: a request for too late a version is a loss.
//   - A store's stream lasts from one Replace to the next, over all watches between the two.
//   - An event is told in a response of its own, as a put or a deletion. A bookmark is a progress
//     notification. For a handler it is a moment at which the informer reports a version, and then
//     the handler no lag.
//   - A run of events that a handler gets by inference (its initial list, a relist, falling behind)
//     is one Range and a new watch. The handler is not told the version of that state: it is the
//     newest before the handler's next event at which the collection was that state. If there is
//     none, the state never was. A relist that leaves the handler with what it had tells it
//     nothing: writes that undo each other may be missing, and begin a new stream.
//
// Not covered: the old object of an event, which a watch does not have on the wire.
//
// # How etcd's members are broken
//
// TestThreeMembers has three members, each a process. A proxy stands between each member and each
// client. Two stand between each pair of members, one for each of the two that may have connected.
//
//   - Kills: SIGKILL for one member, for the leader, for two, for all.
//   - Freezes: SIGSTOP and SIGCONT.
//   - Cuts: proxies hold everything back. Then it arrives, or is lost with its connection.
//   - Leader moves: a request of the client's API.
//   - Compactions: one each second, and others that wait until history is off the disk. They take
//     what the servers have read. In the other half of the rounds they take all, while a server is
//     cut off.
//   - Full disks: writes past the size limit of a file (RLIMIT_FSIZE) fail, at the end of a block
//     of the log or the database, and the member gives up. Or the database reaches its quota, every
//     member refuses writes, and an operator has to delete, compact, defragment and disarm.
//   - Clock jumps: the wall clock of one member or all moves by two seconds to ten years, forth or
//     back. The monotonic clock stays, as it does if an administrator sets the time.
//   - Failpoints: the comments in the source of etcd and bbolt, made code by gofail. The member
//     ends at one, or is delayed at one.
//
// For the last three the member is built here: build_test.go. A server that lists anew may leave
// out changes that have been overtaken, which two of etcd's properties forbid. In the rounds in
// which servers are left behind, the validators judge the writers, and the readers of the storage,
// whose relists are recorded. The readers of the servers are judged by the other properties:
// [Run.JudgeRelisting]. In the end they must hold what etcd has.
package robustness
