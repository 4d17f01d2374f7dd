// Package checked tells whether bytes decode, without decoding them.
//
// Its answers are one-sided. Bytes that are accepted decode without an error: generated code, or a
// JSON decoder for trees, would take them. Bytes that are not accepted are unusual, and may decode
// all the same: only decoding can tell.
//
// It cuts managed fields out of objects in the same way: of each object that is accepted, all.
//
// It reads labels and single texts in the same way: those that it tells are the decoded object's.
package checked
