package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/internal/wire"
)

// What a program needs that also writes the keys of a source, as package origin does.

// Client is the client that the source was made with.
func (s *Source[T]) Client() *clientv3.Client { return s.client }

// Namespace is that of [InNamespace]; empty if the source reads all.
func (s *Source[T]) Namespace() string { return s.options.namespace }

// Expiry is that of [WithExpiry].
func (s *Source[T]) Expiry() time.Duration { return s.options.expiry }

// Key is the etcd key of the object with a store key, NAMESPACE/NAME.
func (s *Source[T]) Key(of string) string { return s.prefix + of }

// Get reads one object by its store key, with a quorum. Revision is that of its last change; it is
// zero if there is no such object. Errors are those of [StatusOf], and 500 for a value that cannot
// be read.
func (s *Source[T]) Get(ctx context.Context, key string) (obj T, revision int64, err error) {
	answer, err := s.client.Get(ctx, s.Key(key))
	if err != nil || len(answer.Kvs) == 0 {
		return obj, 0, StatusOf(ctx, err)
	}
	kv := answer.Kvs[0]
	obj, err = s.decoder.object(key, kv.Value, kv.ModRevision, sharing.Last{})
	if err != nil {
		return obj, 0, apierrors.NewInternalError(fmt.Errorf("object %s cannot be used: %w", key, err))
	}
	return obj, kv.ModRevision, nil
}

// Value is an object as kube-apiserver stores it under a store key: types with generated code in
// protobuf, documents in JSON, encrypted if the source has the keys. The object names its kind, and
// has no resource version.
func (s *Source[T]) Value(ctx context.Context, key string, obj T) (value []byte, err error) {
	if message, ok := any(obj).(interface{ Marshal() ([]byte, error) }); ok {
		value, err = enveloped(obj, message)
	} else {
		value, err = json.Marshal(obj)
		if write := s.options.write; write != nil && err == nil {
			value, err = write(value)
		}
		value = bytes.TrimSpace(value)
	}
	if encrypt := s.options.encrypt; encrypt != nil && err == nil {
		value, err = encrypt(ctx, s.Key(key), value)
	}
	return value, err
}

func enveloped(obj runtime.Object, message interface{ Marshal() ([]byte, error) }) ([]byte, error) {
	raw, err := message.Marshal()
	if err != nil {
		return nil, err
	}
	apiVersion, name := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: name}, Raw: raw}
	envelope, err := unknown.Marshal()
	return slices.Concat([]byte(wire.Magic), envelope), err
}

// Unreadable is the error while etcd has encrypted values that cannot be decrypted: a list without
// them would be taken for the truth. It is nil if all can be read.
func (s *Source[T]) Unreadable() error {
	if locked := s.locked.Load(); locked != nil {
		return fmt.Errorf("not all values can be read, of which %s is one: %w", locked.object, locked)
	}
	return nil
}
