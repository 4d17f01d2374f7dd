package main

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// kind is a kind of objects, as kube-apiserver stores them.
type kind struct {
	name             string
	objects, changes int
	resource         schema.GroupVersionResource
	folder           string // of the keys, below /registry
	codec            runtime.Codec
	empty, emptyList func() runtime.Object
	ours             func(*clientv3.Client) (source, error)
	stored           func(i, state int) (key string, value []byte, err error)
}

const registry = "/registry"

var kinds = []kind{
	inProtobuf[corev1.Pod](100_000, "Pod", corev1.SchemeGroupVersion.WithResource("pods"), "/pods", builtin.Pods(),
		func() runtime.Object { return &corev1.PodList{} },
		func(i, state int) world.Object { return world.Pods{PerSet: 50}.Pod(i, i, state) }),
	inProtobuf[coordinationv1.Lease](100_000, "Lease", coordinationv1.SchemeGroupVersion.WithResource("leases"), "/leases",
		builtin.Of[*coordinationv1.Lease](),
		func() runtime.Object { return &coordinationv1.LeaseList{} }, leaseObject),
	inProtobuf[corev1.ConfigMap](5_000, "ConfigMap", corev1.SchemeGroupVersion.WithResource("configmaps"), "/configmaps",
		builtin.Of[*corev1.ConfigMap](), func() runtime.Object { return &corev1.ConfigMapList{} }, configMap),
	widgets(50_000),
}

// changesPer is how many objects there are for each change of a watch.
const changesPer = 5

// inProtobuf is a built-in kind.
func inProtobuf[O any, T interface {
	*O
	store.Object
}](objects int, name string, resource schema.GroupVersionResource, folder string, description apiserver.Resource[T],
	list func() runtime.Object, object func(i, state int) world.Object) kind {
	return kind{
		name: resource.Resource, objects: objects, changes: objects / changesPer, resource: resource, folder: folder,
		codec: storedCodec(resource.GroupVersion()),
		empty: func() runtime.Object { return T(new(O)) }, emptyList: list,
		ours: func(client *clientv3.Client) (source, error) {
			return newOurs(etcd.New[O, T](client, etcd.Prefix(registry+folder)), description)
		},
		stored: func(i, state int) (string, []byte, error) {
			obj := object(i, state)
			obj.SetResourceVersion("")
			raw, err := obj.Marshal()
			if err != nil {
				return "", nil, err
			}
			unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: resource.GroupVersion().String(), Kind: name}, Raw: raw}
			envelope, err := unknown.Marshal()
			return keyOf(folder, obj.GetNamespace(), obj.GetName()), append([]byte("k8s\x00"), envelope...), err
		},
	}
}

// storedCodec reads and writes one version, and converts nothing. An API server also converts each
// object into its internal version.
func storedCodec(version schema.GroupVersion) runtime.Codec {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	return scheme.Codecs.CodecForVersions(info.Serializer, scheme.Codecs.UniversalDeserializer(), version, version)
}

func keyOf(folder, namespace, name string) string {
	return registry + folder + "/" + store.Key(namespace, name)
}

func leaseObject(i, state int) world.Object {
	leases, _ := world.KindOf("Lease")
	return leases.Object(i, i, state)
}

const configMapSize = 100_000

// noise is random text, of which each ConfigMap has a piece of its own.
var noise = sync.OnceValue(func() string {
	large, _ := world.KindOf("ConfigMap of 900 KB")
	return large.Object(0, 0, 0).(*corev1.ConfigMap).Data["dashboard.json"]
})

func configMap(i, state int) world.Object {
	secrets, _ := world.KindOf("Secret")
	obj := &corev1.ConfigMap{ObjectMeta: secrets.Object(i, i, 0).(*corev1.Secret).ObjectMeta}
	at := (i*7919 + state*104_729) % (len(noise()) - configMapSize)
	obj.Data = map[string]string{"dashboard.json": noise()[at : at+configMapSize]}
	return obj
}

// widgets are custom resources, which are stored in JSON.
func widgets(objects int) kind {
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	folder := "/example.com/widgets"
	return kind{
		name: "custom resources", objects: objects, changes: objects / changesPer, resource: resource, folder: folder,
		codec:     unstructured.UnstructuredJSONScheme,
		empty:     func() runtime.Object { return &unstructured.Unstructured{} },
		emptyList: func() runtime.Object { return &unstructured.UnstructuredList{} },
		ours: func(client *clientv3.Client) (source, error) {
			return newOurs(etcd.New[unstructured.Unstructured](client, etcd.Prefix(registry+folder)), apiserver.Resource[*unstructured.Unstructured]{
				Kind: watchcache.Kind[*unstructured.Unstructured]{
					Group: resource.Group, Version: resource.Version, Plural: resource.Resource, Kind: "Widget",
				},
			})
		},
		stored: func(i, state int) (string, []byte, error) {
			text := world.Widget(i, i, state)
			text = bytes.Replace(text, fmt.Appendf(nil, `"resourceVersion":"%s",`, world.Version(i)), nil, 1)
			text = append([]byte(`{"apiVersion":"example.com/v1","kind":"Widget",`), text[1:]...)
			var u unstructured.Unstructured
			if err := u.UnmarshalJSON(text); err != nil {
				return "", nil, err
			}
			return keyOf(folder, u.GetNamespace(), u.GetName()), text, nil
		},
	}
}

// source is a subject of a measurement.
type source interface {
	// sync returns when the whole state is there.
	sync(ctx context.Context) error
	// reach returns when all changes up to a revision have come.
	reach(ctx context.Context, revision int64) error
}
