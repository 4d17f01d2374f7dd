package etcd

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/tributary-go/tributary/store"
)

// Option narrows a collection (InNamespace), or says how it is read (the rest).
type Option func(*options)

type options struct {
	namespace  string
	apiVersion string
	noSharing  bool
	progress   time.Duration
	expiry     time.Duration
	fields     any // func(T) fields.Set

	read, write func([]byte) ([]byte, error) // nil: JSON is served as it is stored

	// Nil: values are plain.
	decrypt, encrypt func(ctx context.Context, key string, value []byte) ([]byte, error)
}

// defaultProgress keeps a copy's version within seconds of etcd's, for 6 small answers a minute.
const defaultProgress = 10 * time.Second

// InNamespace reads the objects of one namespace: the keys below prefix and namespace. Default, and
// empty: the whole prefix.
func InNamespace(namespace string) Option {
	return func(o *options) { o.namespace = namespace }
}

// WithAPIVersion refuses values of another version than apiVersion, such as "apps/v1": each is a
// listwatch.DecodeError. Say it for a Go type of which several versions can be stored. Default: the
// kind alone is compared with the name of the Go type.
func WithAPIVersion(apiVersion string) Option {
	return func(o *options) { o.apiVersion = apiVersion }
}

// WithProgressEvery sets how often a watch that wants bookmarks asks etcd how far it is. Default 10
// s. Zero asks never: bookmarks are then those that etcd sends by itself, every ten minutes, and a
// reflector takes a quiet collection for a dead connection.
func WithProgressEvery(d time.Duration) Option {
	return func(o *options) { o.progress = d }
}

// WithExpiry has objects that a collection of package origin writes expire: etcd deletes an object
// this long after its last write, or up to a twentieth later, and a minute at most.
// kube-apiserver's events have an hour. Default, and zero: objects stay. It panics below a second,
// which is etcd's unit.
func WithExpiry(d time.Duration) Option {
	if d != 0 && d < time.Second {
		panic(fmt.Sprintf("etcd: WithExpiry(%s): give a second at least, or zero for objects that stay", d))
	}
	return func(o *options) { o.expiry = d }
}

// WithConversion converts JSON between its stored and its served form: read is given each value
// that has come, and write each one that package origin is about to store. Both must be pure and
// safe for concurrent use; nil converts nothing. Their errors must not quote the value. Default:
// objects are served as they are stored.
func WithConversion(read, write func(value []byte) ([]byte, error)) Option {
	return func(o *options) { o.read, o.write = read, write }
}

// WithEncryption has each value that is read decrypted, and each value that a [Collection] writes
// encrypted, as kube-apiserver does at rest. Both functions are given the whole key of etcd, to
// which its providers bind a value, and must be safe for concurrent use. Their errors must not
// quote the value. Default: a value that kube-apiserver has encrypted cannot be read, see
// [Collection.Unreadable].
func WithEncryption(decrypt, encrypt func(ctx context.Context, key string, value []byte) ([]byte, error)) Option {
	return func(o *options) { o.decrypt, o.encrypt = decrypt, encrypt }
}

// WithFields declares the field labels that requests may select by, beside metadata.name and
// metadata.namespace. The function must be pure, and must return each label for any object, the
// empty one too. T is the source's object type, such as *corev1.Pod.
func WithFields[T store.Object](of func(T) fields.Set) Option {
	return func(o *options) { o.fields = of }
}

// WithoutSharing decodes every object into memory of its own. By default, parts of objects that are
// equal in etcd are decoded once and share memory. Secrets never share.
func WithoutSharing() Option {
	return func(o *options) { o.noSharing = true }
}

// fieldsOf has the fields that WithFields declared for objects of type T.
func fieldsOf[T store.Object](o options) func(T) fields.Set {
	switch of := o.fields.(type) {
	case nil:
		return func(T) fields.Set { return nil }
	case func(T) fields.Set:
		return of
	}
	panic(fmt.Sprintf("etcd: WithFields: the function is a %T: it must take the source's object type", o.fields))
}
