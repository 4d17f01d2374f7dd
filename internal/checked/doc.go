// Package checked tells whether bytes decode, without decoding them.
//
// Its answers are one-sided. Bytes that are accepted decode without an error: generated code, or a
// JSON decoder for trees, would take them. Bytes that are not accepted are unusual, and may decode
// all the same: only decoding can tell.
//
// It reads labels in the same way: those that it tells are those of the decoded object.
package checked
