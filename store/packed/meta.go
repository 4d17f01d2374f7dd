package packed

import (
	"encoding/binary"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

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
func (c *cell) GetLabels() map[string]string                  { return c.meta().GetLabels() }
func (c *cell) GetAnnotations() map[string]string             { return c.meta().GetAnnotations() }
func (c *cell) GetFinalizers() []string                       { return c.meta().GetFinalizers() }
func (c *cell) GetOwnerReferences() []metav1.OwnerReference   { return c.meta().GetOwnerReferences() }
func (c *cell) GetManagedFields() []metav1.ManagedFieldsEntry { return c.meta().GetManagedFields() }
func (c *cell) GetObjectKind() schema.ObjectKind              { return c.meta().GetObjectKind() }

// DeepCopyObject returns the metadata.
func (c *cell) DeepCopyObject() runtime.Object {
	if c.hot.Load() == nil {
		return c.meta().(*metav1.PartialObjectMetadata) // read just now
	}
	var copied metav1.PartialObjectMetadata
	mustRead(c, c.read(func(document []byte, flags flags) error { return metadataOf(document, flags, &copied) }))
	return &copied
}

// meta reads the metadata, unless the object is hot.
func (c *cell) meta() store.Object {
	if hot := c.hot.Load(); hot != nil {
		return hot.read()
	}
	out := new(metav1.PartialObjectMetadata)
	mustRead(c, c.read(func(document []byte, flags flags) error { return metadataOf(document, flags, out) }))
	return out
}

// metadataOf decodes the metadata of a document alone.
func metadataOf(document []byte, f flags, out *metav1.PartialObjectMetadata) error {
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
	return out.ObjectMeta.Unmarshal(field)
}

// metadataField is the number of the metadata in each message of the API.
const metadataField = 1

var errMetadata = errors.New("the message has no metadata")

// metadataIn is the field of the metadata in a message, which usually comes first.
func metadataIn(message []byte) ([]byte, error) {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			break
		}
		message = message[n:]
		size, wire := uint64(0), tag&7
		switch wire {
		case 0, 2:
			if size, n = binary.Uvarint(message); n <= 0 {
				return nil, errMetadata
			}
			message = message[n:]
		case 1:
			size = 8
		case 5:
			size = 4
		default:
			return nil, errMetadata
		}
		if wire == 0 {
			continue
		}
		if size > uint64(len(message)) {
			break
		}
		if tag == metadataField<<3|2 {
			return message[:size], nil
		}
		message = message[size:]
	}
	return nil, errMetadata
}

// mustRead panics if a cell cannot be read: it was encoded, or checked, when it came.
func mustRead(c *cell, err error) {
	if err != nil {
		panic(fmt.Sprintf("packed: %s: %v", store.KeyOf(c), err))
	}
}
