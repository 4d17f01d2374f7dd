package packed

import (
	"encoding/binary"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/wire"
	"github.com/tributary-go/tributary/store"
)

// unread completes a cell to an object that cannot be written.
type unread struct{}

func (unread) SetNamespace(string)                          {}
func (unread) SetName(string)                               {}
func (unread) SetUID(types.UID)                             {}
func (unread) SetResourceVersion(string)                    {}
func (unread) SetGenerateName(string)                       {}
func (unread) SetGeneration(int64)                          {}
func (unread) SetSelfLink(string)                           {}
func (unread) SetCreationTimestamp(metav1.Time)             {}
func (unread) SetDeletionTimestamp(*metav1.Time)            {}
func (unread) SetDeletionGracePeriodSeconds(*int64)         {}
func (unread) SetLabels(map[string]string)                  {}
func (unread) SetAnnotations(map[string]string)             {}
func (unread) SetFinalizers([]string)                       {}
func (unread) SetOwnerReferences([]metav1.OwnerReference)   {}
func (unread) SetManagedFields([]metav1.ManagedFieldsEntry) {}

func (c *cell) GetGenerateName() string            { return c.meta().GetGenerateName() }
func (c *cell) GetGeneration() int64               { return c.meta().GetGeneration() }
func (c *cell) GetSelfLink() string                { return c.meta().GetSelfLink() }
func (c *cell) GetCreationTimestamp() metav1.Time  { return c.meta().GetCreationTimestamp() }
func (c *cell) GetDeletionTimestamp() *metav1.Time { return c.meta().GetDeletionTimestamp() }
func (c *cell) GetDeletionGracePeriodSeconds() *int64 {
	return c.meta().GetDeletionGracePeriodSeconds()
}
func (c *cell) GetAnnotations() map[string]string             { return c.meta().GetAnnotations() }
func (c *cell) GetFinalizers() []string                       { return c.meta().GetFinalizers() }
func (c *cell) GetOwnerReferences() []metav1.OwnerReference   { return c.meta().GetOwnerReferences() }
func (c *cell) GetManagedFields() []metav1.ManagedFieldsEntry { return c.allMeta().GetManagedFields() }
func (c *cell) GetObjectKind() schema.ObjectKind              { return c.meta().GetObjectKind() }

// GetLabels reads the labels alone.
func (c *cell) GetLabels() (labels map[string]string) {
	if hot := c.hotObject(); hot != nil {
		return hot.GetLabels()
	}
	usual := false
	mustRead(c, c.read(func(document []byte, flags flags) error {
		labels, usual = labelsOf(document, flags)
		return nil
	}))
	if !usual {
		return c.meta().GetLabels()
	}
	return labels
}

// DeepCopyObject returns the metadata.
func (c *cell) DeepCopyObject() runtime.Object { return c.decodeMeta(allFields) }

// meta reads the metadata but the managed fields, which are half of a pod, unless the object is
// hot. allMeta reads them, too.
func (c *cell) meta() store.Object    { return c.readMeta(lightFields) }
func (c *cell) allMeta() store.Object { return c.readMeta(allFields) }

func (c *cell) readMeta(part metaPart) store.Object {
	if hot := c.hotObject(); hot != nil {
		return hot
	}
	return c.decodeMeta(part)
}

func (c *cell) decodeMeta(part metaPart) *metav1.PartialObjectMetadata {
	out := new(metav1.PartialObjectMetadata)
	mustRead(c, c.read(func(document []byte, flags flags) error { return metadataOf(document, flags, part, out) }))
	return out
}

// metaPart is how much of the metadata is decoded.
type metaPart int

const (
	allFields   metaPart = iota
	lightFields          // managedFields may be missing
)

// metadataOf decodes the metadata of a document alone.
func metadataOf(document []byte, f flags, part metaPart, out *metav1.PartialObjectMetadata) error {
	if f&flagTree != 0 {
		return metadataOfTree(document, part, out)
	}
	if f&flagJSON != 0 {
		err := kjson.UnmarshalCaseSensitivePreserveInts(document, out)
		if f&flagBare != 0 {
			out.TypeMeta = metav1.TypeMeta{}
		}
		return err
	}
	apiVersion, kind, message, err := cutHead(document, f)
	if err != nil {
		return err
	}
	out.TypeMeta = metav1.TypeMeta{APIVersion: string(apiVersion), Kind: string(kind)}
	field, err := metadataIn(message)
	if err != nil {
		return err
	}
	if part == lightFields {
		field = beforeManaged(field)
	}
	return out.ObjectMeta.Unmarshal(field)
}

// metadataOfTree reads the metadata by the tree's own methods. Of a tree nobody has checked the
// types: a field of another type than the metadata's is missing for them, and no error.
func metadataOfTree(document []byte, part metaPart, out *metav1.PartialObjectMetadata) error {
	tree, metadata := map[string]any{}, map[string]any{}
	err := wire.EachMember(document, func(key, value []byte) error {
		switch {
		case string(key) == "apiVersion" || string(key) == "kind":
			return readInto(tree, key, value)
		case string(key) != "metadata" || value[0] != '{':
			return nil
		}
		tree["metadata"] = metadata
		return wire.EachMember(value, func(key, value []byte) error {
			if part == lightFields && string(key) == "managedFields" {
				return nil
			}
			return readInto(metadata, key, value)
		})
	})
	u := &unstructured.Unstructured{Object: tree}
	*out = *meta.AsPartialObjectMetadata(u)
	out.TypeMeta = metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()}
	return err
}

func readInto(members map[string]any, key, value []byte) error {
	var read any
	err := kjson.UnmarshalCaseSensitivePreserveInts(value, &read)
	members[string(key)] = read
	return err
}

// metadataField is the number of the metadata in each message of the API, and managedField that of
// the managed fields in the metadata.
const (
	metadataField = 1
	managedField  = 17
)

var errMetadata = errors.New("the message has no metadata")

// metadataIn is the field of the metadata in a message, which usually comes first.
func metadataIn(message []byte) ([]byte, error) {
	for len(message) > 0 {
		tag, value, rest, ok := cutField(message)
		if !ok {
			break
		}
		if tag == metadataField<<3|2 {
			return value, nil
		}
		message = rest
	}
	return nil, errMetadata
}

// beforeManaged is the metadata without the managed fields. The server writes them last: if they
// are not, all stay.
func beforeManaged(metadata []byte) []byte {
	end := len(metadata)
	for rest := metadata; len(rest) > 0; {
		tag, _, after, ok := cutField(rest)
		switch managed := tag>>3 == managedField; {
		case !ok, !managed && end < len(metadata):
			return metadata
		case managed:
			end = min(end, len(metadata)-len(rest))
		}
		rest = after
	}
	return metadata[:end]
}

// cutField splits the first field off a message. value is nil for a number.
func cutField(message []byte) (tag uint64, value, rest []byte, ok bool) {
	tag, n := binary.Uvarint(message)
	if n <= 0 {
		return 0, nil, nil, false
	}
	message = message[n:]
	size := uint64(0)
	switch tag & 7 {
	case 0, 2:
		if size, n = binary.Uvarint(message); n <= 0 {
			return 0, nil, nil, false
		}
		if message = message[n:]; tag&7 == 0 {
			return tag, nil, message, true
		}
	case 1:
		size = 8
	case 5:
		size = 4
	default:
		return 0, nil, nil, false
	}
	if size > uint64(len(message)) {
		return 0, nil, nil, false
	}
	return tag, message[:size], message[size:], true
}

// mustRead panics if a cell cannot be read: it was encoded, or checked, when it came.
func mustRead(c *cell, err error) {
	if err != nil {
		panic(fmt.Sprintf("packed: %s: %v", store.KeyOf(c), err))
	}
}
