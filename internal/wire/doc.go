// Package wire has the parts of Kubernetes' wire formats that the readers and the writers share:
// the envelope and the fields of protobuf, and the scanners of JSON. It knows no types of the API.
// Functions are safe for concurrent use and keep nothing of the bytes that they are given.
package wire
