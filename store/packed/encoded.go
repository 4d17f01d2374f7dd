package packed

import (
	"hash/maphash"

	"github.com/tributary-go/tributary/internal/pointer"
	"github.com/tributary-go/tributary/store"
)

// Holds is of a [store.Form] of bytes.
func (k *keeper[T]) Holds(entry store.Entry, data []byte) bool {
	return entry.(*cell).digest() == maphash.Bytes(seed, data)
}

// fleeting is the arrival of an object that no store gets.
func (k *keeper[T]) fleeting(e *store.Encoded) (arrival, error) {
	if e.Data != nil {
		return k.arrivalOfBytes(e)
	}
	return k.arrivalOf(e.Decoded.(T), true)
}

// arrivalOfBytes takes the bytes as they are. A type that keeps apiVersion and kind has them before
// its message.
func (k *keeper[T]) arrivalOfBytes(e *store.Encoded) (a arrival, err error) {
	switch {
	case pointer.None(e):
		return a, errNil
	case e.Entry != nil:
		return arrival{cell: e.Entry.(*cell)}, nil
	case e.Data == nil:
		return k.arrivalOf(e.Decoded.(T), e.Fleeting)
	}
	a = arrival{identity: identityOf(e), document: e.Data, obj: e.Decoded, from: e}
	typed := e.Kind != "" || e.APIVersion != ""
	switch {
	case e.JSON && !typed:
		a.flags = flagJSON | flagBare
	case e.JSON:
		a.flags = flagJSON
	case typed:
		a.document = append(appendText(appendText(nil, e.APIVersion), e.Kind), e.Data...)
		a.flags = flagTyped
	}
	if e.JSON && k.form.tree {
		a.flags |= flagTree
	}
	if e.Fleeting || isSecret(e) {
		a.flags |= flagPlain
	}
	return a, nil
}
