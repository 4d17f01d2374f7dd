// Package correctness has Kubernetes' own model of storage judge servers of ours over HTTP. Store
// is a storage.Interface whose objects are behind an API server; package
// k8s.io/apiserver/pkg/storage/testing/correctness judges what it answers.
//
// The module is one of its own: the model asks for Go 1.27 and for libraries that the rest of the
// repository cannot have yet, and the servers are processes with their own.
//
// The model speaks of storage, and HTTP says less. The adapter gives the model's version to a
// NotFound, and the model's text to an error of the same kind; a key that no URL can name selects
// nothing. Not judged are cached objects, patch, apply, status, deletecollection, custom resources,
// restarts, lost connections, and watches that fall behind.
package correctness
