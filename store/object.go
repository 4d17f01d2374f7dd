package store

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is an object of a store: a pointer to an API type, such as *corev1.Pod,
// *unstructured.Unstructured or *metav1.PartialObjectMetadata.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key is the key of an object: "namespace/name", or "name" if namespace is empty (cluster scope).
// client-go's caches and workqueues use the same form.
func Key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// KeyOf is the key under which obj is stored.
func KeyOf(obj Entry) string { return Key(obj.GetNamespace(), obj.GetName()) }

// SplitKey is the inverse of [Key]. It fails on a key with an empty name or more than one slash.
func SplitKey(key string) (namespace, name string, err error) {
	name = key
	if before, after, ok := strings.Cut(key, "/"); ok {
		namespace, name = before, after
	}
	if name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("store: key %q is neither \"namespace/name\" nor \"name\"", key)
	}
	return namespace, name, nil
}
