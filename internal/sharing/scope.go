package sharing

import "k8s.io/client-go/rest"

// Scoped is a client whose collections share memory only with those of an equal scope, and not with
// all of the process. Scope is comparable, and small, since it is kept as long as the collections.
type Scoped struct {
	rest.Interface
	Scope any
}

// Unscoped returns the client itself, and its scope if it has one.
func Unscoped(client rest.Interface) (own rest.Interface, scope any) {
	if scoped, ok := client.(Scoped); ok {
		return scoped.Interface, scoped.Scope
	}
	return client, nil
}
