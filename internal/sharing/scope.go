package sharing

import (
	"reflect"

	"k8s.io/client-go/rest"
)

// Scoped is a client whose collections share memory only with those of an equal scope, and not with
// all of the client. Scope is comparable, and small, since it is kept as long as the collections.
type Scoped struct {
	rest.Interface
	Scope any
}

// Unscoped returns the client itself, and the scope of its collections. Without one of its own it
// is the client: what is written into an object of one cluster must not show in another one's.
func Unscoped(client rest.Interface) (own rest.Interface, scope any) {
	if scoped, ok := client.(Scoped); ok {
		return scoped.Interface, scoped.Scope
	}
	if !reflect.TypeOf(client).Comparable() {
		return client, new(byte)
	}
	return client, client
}
