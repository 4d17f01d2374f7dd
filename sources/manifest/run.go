package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tributary-go/tributary/sources/internal/limit"
)

// run is the reading of one manifest of objects of one kind.
type run struct {
	path    string
	data    []byte                  // of the whole manifest
	kind    schema.GroupVersionKind // of the wanted objects
	list    schema.GroupVersionKind // its list, beside a v1 List
	limits  limits
	anyItem bool // an item of a list is of the kind whatever it calls itself
	// object takes one object of the kind, in JSON.
	object func(at place, data []byte)
	// keyOf is the key of an object with a valid name, and else empty.
	keyOf    func(namespace, name string) string
	rejected []*Error
}

// place is a place in a manifest.
type place struct {
	document *document // nil for protobuf, which is no text
	item     int       // from 1, or 0 outside of a list
	raw      []byte    // its bytes; nil: the whole manifest
	object   []byte    // the same as JSON, if it is an object of the wanted kind
	key      string    // of an object that is not JSON
}

// reject notes a part that gave no object. key is the object's, if it has a valid one.
func (r *run) reject(at place, key string, err error) {
	if at.object == nil && at.key == "" {
		err = limit.Foreign(err)
	}
	r.rejected = append(r.rejected, r.fault(at, key, err))
}

// fault is an error with its place.
func (r *run) fault(at place, key string, err error) *Error {
	fault := &Error{Path: r.path, Item: at.item, Pod: key, Err: err, key: at.key, digest: digest(at.raw)}
	if at.raw == nil {
		fault.digest = digest(r.data)
	}
	if at.object != nil {
		fault.key = r.keyOf(nameIn(at.object))
	}
	if at.document != nil {
		fault.Document, fault.Line = at.document.number, at.document.lineOf(at.item, err)
	}
	return fault
}

// stream reads all documents of a manifest.
func (r *run) stream(data []byte) {
	empty := true
	documents := splitDocuments(data)
	if len(documents) > maxPods {
		r.reject(place{}, "", ErrTooLarge)
		return
	}
	for _, doc := range documents {
		if r.document(place{document: &doc, raw: doc.data}) {
			empty = false
		}
	}
	if empty {
		r.reject(place{}, "", ErrEmpty)
	}
}

// document reads one document, and reports whether it has any content.
func (r *run) document(at place) bool {
	data, kind, err := r.limits.openDocument(at.document)
	if err == nil && string(data) == "null" {
		return false
	}
	if rest := at.document.rest; err == nil && rest != nil {
		// The part follows the object, and stays the same one however the object is edited.
		r.reject(place{document: at.document, raw: []byte(rest.why)}, "", rest)
	}
	switch {
	case err != nil:
		r.reject(at, "", err)
	case kind == r.kind:
		r.one(at, data)
	case kind == r.list, kind == listKind:
		r.items(at, kind, data)
	default:
		r.reject(at, "", r.wrongKind())
	}
	return true
}

func (r *run) items(at place, kind schema.GroupVersionKind, data []byte) {
	items, err := decodeItems(data)
	if err == nil && len(items) > maxPods {
		err = ErrTooLarge
	}
	if err != nil {
		r.reject(at, "", err)
		return
	}
	for i, item := range items {
		at.item, at.raw = i+1, item
		if !r.anyItem {
			if err := r.checkItem(item, kind); err != nil {
				r.reject(at, "", err)
				continue
			}
		}
		r.one(at, item)
	}
}

func (r *run) one(at place, data []byte) {
	at.object = data
	if err := r.limits.checkObject(data); err != nil {
		r.reject(at, "", err)
		return
	}
	r.object(at, data)
}

// checkItem wants an item to be of the kind. An item of a list of the kind may leave its kind out,
// but must not name another one.
func (r *run) checkItem(data []byte, list schema.GroupVersionKind) error {
	kind, err := kindOf(data)
	if err != nil {
		return err
	}
	if list == r.list {
		if kind.Group == "" && kind.Version == "" {
			kind.Group, kind.Version = r.kind.Group, r.kind.Version
		}
		if kind.Kind == "" {
			kind.Kind = r.kind.Kind
		}
	}
	if kind != r.kind {
		return fmt.Errorf("apiVersion and kind of an item must be %s and %s", r.kind.GroupVersion(), r.kind.Kind)
	}
	return nil
}

func (r *run) wrongKind() error {
	return fmt.Errorf("apiVersion and kind must be %s and %s, %s or List", r.kind.GroupVersion(), r.kind.Kind, r.list.Kind)
}

// nameIn reads the name of an object that may be wrong elsewhere. Both results are empty if one
// cannot be read.
func nameIn(data []byte) (namespace, name string) {
	var object struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	var meta struct {
		Name      json.RawMessage `json:"name"`
		Namespace json.RawMessage `json:"namespace"`
	}
	if utiljson.Unmarshal(data, &object) != nil || utiljson.Unmarshal(object.Metadata, &meta) != nil ||
		utiljson.Unmarshal(meta.Name, &name) != nil {
		return "", ""
	}
	if len(meta.Namespace) > 0 && utiljson.Unmarshal(meta.Namespace, &namespace) != nil {
		return "", ""
	}
	return namespace, name
}

// digest ignores the white space around a part, which differs for the last document of a stream.
func digest(data []byte) string {
	sum := sha256.Sum256(bytes.TrimSpace(data))
	return string(sum[:16])
}
