// Package delta keeps documents that resemble each other as differences.
//
//	generation := delta.Learn(samples...)
//	payload, base := packer.Pack(nil, document, generation.Root())
//	document, err := unpacker.Unpack(buffer, payload, base)
//
// A payload is a list of copies from a sibling, the base, and of literals between them. A base is a
// payload against the root of its generation in turn, so a document is two steps from plain bytes
// at most. Both are in Huffman codes of the generation, one for each context, if that is shorter. A
// base stays plain.
//
// # Guarantees
//
//  1. Unpack returns the very bytes that were given to Pack, whatever documents the generation was
//     learned from (FuzzPack).
//  2. A damaged payload is [ErrDamaged] or another document. It is never a panic, and allocates no
//     more than [MaxDocument] (FuzzUnpack).
//  3. A [Generation] and a [Base] never change, and any number of goroutines may use one. A Packer
//     and an Unpacker belong to one goroutine at a time.
//  4. A generation is freed with its last base. A base of a small generation is the root alone, and
//     a small generation holds nothing beside the root's bytes.
package delta
