package listwatch

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/store"
)

// Holding returns the same source for a reader that has a copy already: an object whose UID and resource version
// held's object has too is not decoded again, and held's object is yielded in its place. A list then costs what has
// changed. By the API's rules an object does not change without its resource version.
//
// held is called by whoever ranges over the list or watch, with the object's key, and must not block. A reflector finds
// this method by type assertion. It has no effect on sources that do not decode.
func (lw *ListWatch[T]) Holding(held func(key string) (T, bool)) ListerWatcher[T] {
	if lw.holding == nil {
		return lw
	}
	return lw.holding(held)
}

// identity is what two states of one object differ in, as it stands in a buffer.
type identity struct{ namespace, name, resourceVersion, uid []byte }

// heldItem returns what is held of an item of a protobuf list.
func (d *decoder[T]) heldItem(data []byte, gvk schema.GroupVersionKind) (obj T, found bool) {
	if d.held == nil || d.check(gvk.Kind) != nil {
		return obj, false
	}
	return d.heldAs(protobufIdentity(data))
}

// heldEvent returns the event whose object is held.
func (d *decoder[T]) heldEvent(f frame) (event Event[T], found bool) {
	kind := watch.EventType(f.event)
	var obj T
	switch {
	case d.held == nil || f.malformed != nil || kind != watch.Added && kind != watch.Modified && kind != watch.Deleted:
	case f.json:
		obj, found = d.heldAs(jsonIdentity(f.object))
	case f.sealed == nil && f.kind.Kind != "" && d.check(f.kind.Kind) == nil:
		obj, found = d.heldAs(f.identity, f.identified)
	}
	if found {
		event = newEvent(kind, obj)
	}
	return event, found
}

// heldAs returns the object that is held in just this state.
func (d *decoder[T]) heldAs(id identity, ok bool) (obj T, found bool) {
	if !ok || len(id.uid) == 0 || len(id.resourceVersion) == 0 {
		return obj, false
	}
	obj, found = d.held(store.Key(string(id.namespace), string(id.name)))
	if !found || string(obj.GetUID()) != string(id.uid) || obj.GetResourceVersion() != string(id.resourceVersion) {
		var none T
		return none, false
	}
	return obj, true
}

// once sets a part of the identity, which must not come a second time.
func (*identity) once(part *[]byte, value []byte) error {
	if *part != nil {
		return errMalformed
	}
	*part = value
	return nil
}

// Numbers of the fields of ObjectMeta that make an identity.
const (
	metadataField  = 1 // of an object
	nameField      = 1
	namespaceField = 3
	uidField       = 5
	versionField   = 6
)

// protobufIdentity reads who an object is without decoding it. It is not ok where the metadata is not written as
// servers write it: in one part, each field once.
func protobufIdentity(data []byte) (id identity, ok bool) {
	parts := 0
	err := eachField(data, metadataField, func(field int, value []byte) error {
		if field != metadataField {
			return nil
		}
		parts++
		return eachField(value, versionField, func(field int, value []byte) error {
			var err error
			switch field {
			case nameField:
				err = id.once(&id.name, value)
			case namespaceField:
				err = id.once(&id.namespace, value)
			case uidField:
				err = id.once(&id.uid, value)
			case versionField:
				err = id.once(&id.resourceVersion, value)
			}
			return err
		})
	})
	return id, err == nil && parts == 1
}

// jsonIdentity does the same for JSON. It stops when it knows enough, which is at the beginning of what servers write: a UID is
// of one object only, so that what stands behind cannot make it another's.
func jsonIdentity(data []byte) (id identity, ok bool) {
	err := eachMember(data, func(key, value []byte) error {
		if string(key) != "metadata" {
			return nil
		}
		err := eachMember(value, id.read)
		if err == nil {
			err = errKnown
		}
		return err
	})
	return id, err == errKnown
}

// errKnown ends the search.
var errKnown = errors.New("known")

// read takes one member of the metadata.
func (id *identity) read(key, value []byte) (err error) {
	var into *[]byte
	switch string(key) {
	case "name":
		into = &id.name
	case "namespace":
		into = &id.namespace
	case "uid":
		into = &id.uid
	case "resourceVersion":
		into = &id.resourceVersion
	default:
		return nil
	}
	if *into, err = unquote(value); err == nil && id.name != nil && id.uid != nil && id.resourceVersion != nil {
		err = errKnown
	}
	return err
}
