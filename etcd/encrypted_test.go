package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/etcd/origin"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

const before = "k8s:enc:toy:v1:key1:"

// toy binds a value to its key in etcd, and reads it backwards.
func toy(_ context.Context, key string, value []byte) ([]byte, error) {
	text := append([]byte(key), value...)
	for i, j := 0, len(text)-1; i < j; i, j = i+1, j-1 {
		text[i], text[j] = text[j], text[i]
	}
	return append([]byte(before), text...), nil
}

func untoy(_ context.Context, key string, value []byte) ([]byte, error) {
	text, locked := bytes.CutPrefix(value, []byte(before))
	if !locked {
		return value, nil
	}
	text = bytes.Clone(text)
	for i, j := 0, len(text)-1; i < j; i, j = i+1, j-1 {
		text[i], text[j] = text[j], text[i]
	}
	text, own := bytes.CutPrefix(text, []byte(key))
	if !own {
		return nil, errors.New("it was encrypted for another object")
	}
	return text, nil
}

// TestEncryptedValues: with the keys they are read, and written as they were. Without, each read of
// the collection is an error that names an object, the provider and its key: no list leaves them
// out in silence.
func TestEncryptedValues(t *testing.T) {
	client := connect(t, clientv3.Config{}, start(t))
	resource := builtin.Pods()
	source := etcd.New[corev1.Pod](client, pods).With(etcd.WithEncryption(untoy, toy))
	withKeys, err := origin.New(source, resource.Kind, resource.Rules)
	require.NoError(t, err)
	withKeys, _ = serveCollection(t, withKeys)
	created, err := withKeys.Create(pod("locked"))
	require.NoError(t, err)
	found, err := withKeys.Get("ns", "locked")
	require.NoError(t, err)
	require.Equal(t, created, found)
	stored, err := client.Get(t.Context(), pods+"ns/locked")
	require.NoError(t, err)
	require.True(t, bytes.HasPrefix(stored.Kvs[0].Value, []byte(before)))

	without, err := origin.New(etcd.New[corev1.Pod](client, pods), resource.Kind, resource.Rules)
	require.NoError(t, err)
	without, _ = serveCollection(t, without)
	server, err := apiserver.NewServer()
	require.NoError(t, err)
	apiserver.ServeCollection(server, without.Collection, resource.View, apiserver.FilledBy(without))
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	t.Cleanup(server.Close)
	reads, err := kubernetes.NewForConfig(&rest.Config{Host: listener.URL, QPS: -1})
	require.NoError(t, err)
	says := `pods: not all values can be read, of which ns/locked is one: the value is encrypted at rest (provider "toy", key "key1"), and no key was given`
	for _, options := range []metav1.ListOptions{{}, {ResourceVersion: "0"}, {Limit: 1}} {
		_, err = reads.CoreV1().Pods("").List(t.Context(), options)
		require.ErrorContains(t, err, says)
	}
	for _, name := range []string{"locked", "other"} {
		_, err = reads.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
		require.ErrorContains(t, err, says)
	}
	_, err = reads.CoreV1().Pods("ns").Create(t.Context(), pod("locked"), metav1.CreateOptions{})
	require.ErrorContains(t, err, "encrypted at rest")
}
