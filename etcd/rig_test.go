package etcd_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

const (
	pods     = "/registry/pods/"
	patience = time.Minute // for what must come
)

// start runs an etcd of one member in this process, until the test ends.
func start(t testing.TB, change ...func(*embed.Config)) *member {
	t.Helper()
	config := memberConfig(t, "one", free(t))
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	for _, do := range change {
		do(config)
	}
	server := run(t, config)
	<-server.Server.ReadyNotify()
	return server
}

func memberConfig(t testing.TB, name string, peer url.URL) *embed.Config {
	t.Helper()
	config := embed.NewConfig()
	config.Name, config.Dir = name, t.TempDir()
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	config.UnsafeNoFsync = true
	config.TickMs, config.ElectionMs = 20, 200
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	client := free(t)
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	return config
}

// member is an etcd of this process. Unlike embed's, its Close may be called again.
type member struct {
	*embed.Etcd
	once sync.Once
}

func (m *member) Close() { m.once.Do(m.Etcd.Close) }

func run(t testing.TB, config *embed.Config) *member {
	t.Helper()
	server, err := embed.StartEtcd(config)
	require.NoError(t, err)
	m := &member{Etcd: server}
	t.Cleanup(m.Close)
	return m
}

// free is the address of a loopback port that nobody listens on. No connection takes it before a
// server does: the kernel gives out ports from 32768 on.
func free(t testing.TB) url.URL {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if listener, err := net.Listen("tcp", address); err == nil {
			require.NoError(t, listener.Close())
			return url.URL{Scheme: "http", Host: address}
		}
	}
	require.Fail(t, "no port is free")
	return url.URL{}
}

// connect makes a client that is closed with the test.
func connect(t testing.TB, config clientv3.Config, servers ...*member) *clientv3.Client {
	t.Helper()
	for _, server := range servers {
		config.Endpoints = append(config.Endpoints, server.Config().AdvertiseClientUrls[0].Host)
	}
	config.Logger = zap.NewNop()
	client, err := clientv3.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// inProtobuf is an object as kube-apiserver stores the types that it is built with.
func inProtobuf(apiVersion, kind string, obj runtime.Object) ([]byte, error) {
	obj = obj.DeepCopyObject()
	obj.(metav1.Object).SetResourceVersion("")
	message, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		return nil, err
	}
	unknown := &runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: message}
	envelope, err := unknown.Marshal()
	return append([]byte("k8s\x00"), envelope...), err
}

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid-of-1"},
		Spec:       corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
	for _, do := range change {
		do(p)
	}
	return p
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { metav1.SetMetaDataLabel(&p.ObjectMeta, key, value) }
}

func keyOf(p *corev1.Pod) string { return pods + p.Namespace + "/" + p.Name }

// put writes a pod and returns the revision.
func put(t testing.TB, client *clientv3.Client, p *corev1.Pod) int64 {
	t.Helper()
	return putValue(t, client, keyOf(p), podValue(t, p))
}

func podValue(t testing.TB, p *corev1.Pod) []byte {
	t.Helper()
	value, err := inProtobuf("v1", "Pod", p)
	require.NoError(t, err)
	return value
}

func putValue(t testing.TB, client *clientv3.Client, key string, value []byte) int64 {
	t.Helper()
	answer, err := client.Put(t.Context(), key, string(value))
	require.NoError(t, err)
	return answer.Header.Revision
}

func remove(t testing.TB, client *clientv3.Client, key string) int64 {
	t.Helper()
	answer, err := client.Delete(t.Context(), key)
	require.NoError(t, err)
	require.EqualValues(t, 1, answer.Deleted)
	return answer.Header.Revision
}

// compact forgets everything before a revision, and returns when that is done.
func compact(t testing.TB, client *clientv3.Client, revision int64) {
	t.Helper()
	_, err := client.Compact(t.Context(), revision, clientv3.WithCompactPhysical())
	require.NoError(t, err)
}

func at(revision int64) string { return fmt.Sprint(revision) }

// read reads a list that must be complete.
func read[T store.Object](t testing.TB, list listwatch.List[T]) ([]T, metav1.ListMeta) {
	t.Helper()
	objects, meta, err := tryRead(list)
	require.NoError(t, err)
	return objects, meta
}

func tryRead[T store.Object](list listwatch.List[T]) (objects []T, meta metav1.ListMeta, err error) {
	for obj, err := range list.Items {
		if err != nil {
			return objects, list.Meta(), err
		}
		objects = append(objects, obj)
	}
	return objects, list.Meta(), nil
}

// follow pulls a watch event by event.
type follow[T store.Object] struct {
	t    testing.TB
	pull func() (listwatch.Event[T], error, bool)
}

func watchFrom[T store.Object](t testing.TB, source listwatch.ListerWatcher[T], options metav1.ListOptions) *follow[T] {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	pull, stop := iter.Pull2(source.Watch(ctx, options))
	t.Cleanup(func() { cancel(); stop() })
	return &follow[T]{t, pull}
}

func (f *follow[T]) next() listwatch.Event[T] {
	f.t.Helper()
	event, err, ok := f.pull()
	require.NoError(f.t, err)
	require.True(f.t, ok, "the watch has ended")
	return event
}

func (f *follow[T]) failure() error {
	f.t.Helper()
	_, err, ok := f.pull()
	require.True(f.t, ok, "the watch has ended without an error")
	require.Error(f.t, err)
	return err
}

// seen is an event in one line: "ADDED a@3".
func seen(e listwatch.Event[*corev1.Pod]) string {
	if e.Type == watch.Bookmark {
		line := "BOOKMARK " + e.ResourceVersion
		if e.InitialEventsEnd {
			line += " end"
		}
		return line
	}
	line := fmt.Sprintf("%s %s@%s", e.Type, e.Object.Name, e.Object.ResourceVersion)
	if e.ResourceVersion != e.Object.ResourceVersion {
		line += " resume " + e.ResourceVersion
	}
	return line
}

func names(list []*corev1.Pod) []string {
	out := []string{}
	for _, p := range list {
		out = append(out, p.Name)
	}
	return out
}
