package packed

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// unread completes an entry of a [store.Closed] to an object. None of its methods is called: the
// store reads names, UID and version of an entry, and writes nothing.
type unread struct{}

func (unread) DeepCopyObject() runtime.Object                       { return nil }
func (unread) GetObjectKind() schema.ObjectKind                     { return schema.EmptyObjectKind }
func (unread) SetNamespace(string)                                  {}
func (unread) SetName(string)                                       {}
func (unread) SetUID(types.UID)                                     {}
func (unread) SetResourceVersion(string)                            {}
func (unread) GetGenerateName() (none string)                       { return none }
func (unread) SetGenerateName(string)                               {}
func (unread) GetGeneration() (none int64)                          { return none }
func (unread) SetGeneration(int64)                                  {}
func (unread) GetSelfLink() (none string)                           { return none }
func (unread) SetSelfLink(string)                                   {}
func (unread) GetCreationTimestamp() (none metav1.Time)             { return none }
func (unread) SetCreationTimestamp(metav1.Time)                     {}
func (unread) GetDeletionTimestamp() (none *metav1.Time)            { return none }
func (unread) SetDeletionTimestamp(*metav1.Time)                    {}
func (unread) GetDeletionGracePeriodSeconds() (none *int64)         { return none }
func (unread) SetDeletionGracePeriodSeconds(*int64)                 {}
func (unread) GetLabels() (none map[string]string)                  { return none }
func (unread) SetLabels(map[string]string)                          {}
func (unread) GetAnnotations() (none map[string]string)             { return none }
func (unread) SetAnnotations(map[string]string)                     {}
func (unread) GetFinalizers() (none []string)                       { return none }
func (unread) SetFinalizers([]string)                               {}
func (unread) GetOwnerReferences() (none []metav1.OwnerReference)   { return none }
func (unread) SetOwnerReferences([]metav1.OwnerReference)           {}
func (unread) GetManagedFields() (none []metav1.ManagedFieldsEntry) { return none }
func (unread) SetManagedFields([]metav1.ManagedFieldsEntry)         {}
