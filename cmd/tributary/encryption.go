package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/tributary-go/tributary/etcd"
)

// encryption has the providers of an EncryptionConfiguration, as kube-apiserver makes them; nil if
// values are plain. Its KMS plugins are followed until ctx ends.
func encryption(ctx context.Context, file string) (encryptionconfig.StaticTransformers, error) {
	if file == "" {
		return nil, nil
	}
	config, err := encryptionconfig.LoadEncryptionConfig(ctx, file, false, "")
	if err != nil {
		return nil, fmt.Errorf("--encryption-provider-config %s: %w", file, err)
	}
	return config.Transformers, nil
}

// encrypted has the values of a resource decrypted and encrypted.
func (s *site) encrypted(r schema.GroupResource) (options []etcd.Option) {
	if s.encryption == nil {
		return nil
	}
	t := s.encryption.TransformerForResource(r)
	return []etcd.Option{etcd.WithEncryption(
		func(ctx context.Context, key string, stored []byte) ([]byte, error) {
			plain, _, err := t.TransformFromStorage(ctx, stored, value.DefaultContext(key))
			return plain, err
		},
		func(ctx context.Context, key string, plain []byte) ([]byte, error) {
			return t.TransformToStorage(ctx, plain, value.DefaultContext(key))
		},
	)}
}
