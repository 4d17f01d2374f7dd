// Package sharing decodes API objects with *interning*: parts that are equal on the wire are
// decoded once. Objects of one collection repeat each other, and the parts that they repeat
// become the same Go values. Nothing is left out: the result is deeply equal to the result of
// the plain decoders.
//
// An object is taken apart into the fields of its messages (protobuf) or its members (JSON). A part
// is compared with the bytes that stood in its place lately: in the neighbours of the object, which
// are alike. If they are equal, so is the Go value. If not, the bytes are looked up in the memo of
// all collections of that kind, and the Go value that was decoded from equal bytes is assigned. A
// part that is not found is taken apart in turn, or goes through the plain decoder, and is kept.
// Protobuf messages are decoded by a plan of offsets, made once per type from the struct tags: see
// unsafe.go for its rules.
//
// Read kind.go, memo.go and table.go first: the memory of all collections of a kind, the part of
// one of them, and how a value is found. Then decoder.go, and protobuf: node.go (places and their
// habits), walk_protobuf.go, change.go (the last state of an object) and notes.go, which only saves
// time. JSON is in the files with that name, and place.go. All bounds are in limits.go.
//
//  1. Only the form that API servers write is taken apart: known fields of the declared wire
//     type, in ascending order, each in one run. A message of any other form is decoded plainly,
//     as a whole.
//  2. The parts that are worth a look-up are not declared but learned, for each place in an
//     object. A place that rarely finds a value rests for a while and is tried again. So does a
//     whole type: while few of its objects have an eighth of their bytes found, the generated
//     code decodes them. Objects below 1 KiB are not compared with their last state.
//  3. Different bytes are never taken for equal. Up to 15 bytes are compared themselves, longer
//     ones by 128 bits of a polynomial hash (GMAC) under a key that never leaves the process.
//     For two inputs of n bytes that were chosen without the key, the chance of one hash is
//     below n/2^124, by proof and not by experience.
//  4. All collections of a [Kind] remember together. The first 128 KiB of its objects, counted
//     once each in protobuf, are decoded plainly and remember nothing. Collections forget
//     values that the last two generations of objects did not use. The values of a generation
//     stand for at most an eighth of the collections' bytes on the wire, but for 256 KiB in
//     small collections and never for more than 128 MiB. A collection whose first list has not
//     ended adds at most 8 MiB. What a kind remembers goes with the last memo. No value stands
//     for more than 4 KiB. In protobuf, a place in which most look-ups find nothing has a value
//     kept only when it comes a second time. A decoder keeps bytes beside recent values: a 64th
//     of the collection's, from 64 KiB to 1 MiB, none where places rest, and none in a
//     collection below 1 MiB. Its names of labels take 32 KiB. There are as many decoders as
//     goroutines that decode at once. While none does, the next garbage collections leave one
//     for each core, and at most 4.
//  5. A protobuf object that changes is also compared with its own last state: the bytes of each
//     part with the Go value there. Adjacent fields that are equal, from 48 bytes to 64 KiB, are
//     noted with one key, and the next change is compared with that. An object has at most 48
//     notes of 32 bytes. The reader has the last state, and keeps its notes.
//  6. No decoder waits until another one has kept a value: the object then has a copy of its own. A
//     decoder only waits while a generation ends of which the space serves again.
//  7. After [Memo.Doubt], a value is handed out again only once it was compared with its bytes:
//     a reader may have written into it.
//
// Objects that a Memo has made share memory with each other and must not be modified.
package sharing
