// Package sharing decodes API objects with *interning*: parts that are equal on the wire are
// decoded once. Objects of one collection repeat each other, and the parts that they repeat
// become the same Go values. Nothing is left out: the result is deeply equal to the result of
// the plain decoders.
//
// An object is taken apart into the fields of its messages (protobuf) or its members (JSON). A
// field is compared with the bytes in the same place of the previous object. If they are equal,
// so is the Go value. If not, the bytes are looked up in a [Memo], and the Go value that was
// decoded from equal bytes is assigned. A field that is not found is taken apart in turn, or
// goes through the plain decoder, and is kept.
//
//  1. Only the form that API servers write is taken apart: known fields of the declared wire
//     type, in ascending order, each in one run. A message of any other form is decoded plainly,
//     as a whole.
//  2. The fields that are worth a look-up are not declared but learned, for each place in an
//     object. A place that rarely finds a value rests for a while and is tried again.
//  3. Different bytes are never taken for equal. Up to 15 bytes are compared themselves, longer
//     ones by 128 bits of a polynomial hash (GMAC) under a key that never leaves the process.
//     For two inputs of n bytes that were chosen without the key, the chance of one hash is
//     below n/2^124, by proof and not by experience.
//  4. A Memo is bounded in bytes, and forgets values that the last two generations of objects
//     did not use. It remembers no part of more than 4 KiB.
//  5. An object that changes is also compared with its own last state, by its texts and the keys
//     of its other fields. The last state is held by a weak pointer.
//  6. After [Memo.Doubt], a value is handed out again only once it was compared with its bytes:
//     a reader may have written into it.
//
// Objects that a Memo has made share memory with each other and must not be modified.
package sharing
