// Package backup reads an etcd backup file without an etcd: the file that `etcdctl snapshot save`
// writes, or a copy of a member's database (member/snap/db). A [Backup] has a client, so that
// whatever reads an etcd reads the file, too:
//
//	saved, err := backup.Open("backup.db")
//	if err != nil { … }
//	defer saved.Close()
//	pods := etcd.New[corev1.Pod](saved.Client(), "/registry/pods/")
//
// # Guarantees
//
//  1. The file is never written to. Several programs may read it at once.
//  2. The content is that of the newest revision in the file. Older revisions are refused as
//     compacted, and watches are told progress and nothing else.
//  3. [Open] reads the whole file: the hash at its end, if it has one, and every revision. A file
//     that is damaged is a [DamageError], which says up to which revision the file can be read, and
//     which revisions are missing. [Salvage] reads it that far.
//
// A copy of a database has no hash. Damage to its structure is found all the same, but not a value
// that has become another one.
//
// # Cost
//
// The keys are held in memory, with about 60 bytes for each. Values stay in the file, which is
// mapped into memory.
package backup
