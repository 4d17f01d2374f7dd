package clientgo

import "k8s.io/client-go/tools/cache"

// ByMetadata wraps a handler that needs of an object its key or its metadata alone, as most do that
// fill a workqueue. Of an informer of packed bytes nothing is decoded for it: it gets objects with
// metadata, of a type of ours, so that cache.MetaNamespaceKeyFunc works and a type assertion fails.
// Of any other informer it gets the objects themselves, or client-go's.
func ByMetadata(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	return metadataHandler{handler}
}

type metadataHandler struct{ cache.ResourceEventHandler }
