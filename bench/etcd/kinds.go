package main

import (
	"bytes"
	"fmt"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tributary-go/tributary/bench/harness"
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
	objects          int
	resource         schema.GroupVersionResource
	folder           string // of the keys, below /registry
	codec            runtime.Codec
	empty, emptyList func() runtime.Object
	ours             func(*clientv3.Client) source
	stored           func(i, state int) (key string, value []byte)
}

const registry = "/registry"

// prefix begins the keys.
func (k kind) prefix() string { return registry + k.folder + "/" }

func (k kind) key(obj store.Object) string {
	return k.prefix() + store.Key(obj.GetNamespace(), obj.GetName())
}

var kinds = []kind{
	inProtobuf[corev1.Pod](100_000, "Pod", corev1.SchemeGroupVersion.WithResource("pods"), builtin.Pods(),
		func() runtime.Object { return &corev1.PodList{} }, world.Pods{PerSet: 50}.Kind("Pod").Object),
	inProtobuf[coordinationv1.Lease](100_000, "Lease", coordinationv1.SchemeGroupVersion.WithResource("leases"), builtin.Of[*coordinationv1.Lease](),
		func() runtime.Object { return &coordinationv1.LeaseList{} }, world.KindOf("Lease").Object),
	inProtobuf[corev1.ConfigMap](5_000, "ConfigMap", corev1.SchemeGroupVersion.WithResource("configmaps"), builtin.Of[*corev1.ConfigMap](),
		func() runtime.Object { return &corev1.ConfigMapList{} }, configMap),
	widgets(50_000),
}

// changesPer is how many objects there are for each change of a watch.
const changesPer = 5

// inProtobuf is a built-in kind.
func inProtobuf[O any, T interface {
	*O
	store.Object
}](objects int, name string, resource schema.GroupVersionResource, description apiserver.Resource[T],
	list func() runtime.Object, object func(i, version, state int) world.Object) kind {
	k := kind{
		name: resource.Resource, objects: objects, resource: resource, folder: "/" + resource.Resource,
		codec: storedCodec(resource.GroupVersion()), empty: func() runtime.Object { return T(new(O)) }, emptyList: list,
	}
	k.ours = func(client *clientv3.Client) source {
		return newOurs(etcd.New[O, T](client, etcd.Prefix(registry+k.folder)), description)
	}
	k.stored = func(i, state int) (string, []byte) {
		obj := object(i, i, state)
		obj.SetResourceVersion("")
		unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: resource.GroupVersion().String(), Kind: name}, Raw: harness.Must(obj.Marshal())}
		return k.key(obj.(store.Object)), append([]byte("k8s\x00"), harness.Must(unknown.Marshal())...)
	}
	return k
}

// storedCodec reads and writes one version, and converts nothing. An API server also converts each
// object into its internal version.
func storedCodec(version schema.GroupVersion) runtime.Codec {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	return scheme.Codecs.CodecForVersions(info.Serializer, scheme.Codecs.UniversalDeserializer(), version, version)
}

const configMapSize = 100_000

// noise is random text, of which each ConfigMap has a piece of its own.
var noise = sync.OnceValue(func() string {
	return world.KindOf("ConfigMap of 900 KB").Object(0, 0, 0).(*corev1.ConfigMap).Data["dashboard.json"]
})

func configMap(i, version, state int) world.Object {
	obj := &corev1.ConfigMap{ObjectMeta: world.KindOf("Secret").Object(i, version, 0).(*corev1.Secret).ObjectMeta}
	at := (i*7919 + state*104_729) % (len(noise()) - configMapSize)
	obj.Data = map[string]string{"dashboard.json": noise()[at : at+configMapSize]}
	return obj
}

// widgets are custom resources, which are stored in JSON.
func widgets(objects int) kind {
	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	k := kind{
		name: "custom resources", objects: objects, resource: resource, folder: "/example.com/widgets",
		codec:     unstructured.UnstructuredJSONScheme,
		empty:     func() runtime.Object { return &unstructured.Unstructured{} },
		emptyList: func() runtime.Object { return &unstructured.UnstructuredList{} },
	}
	k.ours = func(client *clientv3.Client) source {
		described := watchcache.Kind[*unstructured.Unstructured]{Group: resource.Group, Version: resource.Version, Plural: resource.Resource, Kind: "Widget"}
		return newOurs(etcd.New[unstructured.Unstructured](client, etcd.Prefix(registry+k.folder)), apiserver.Resource[*unstructured.Unstructured]{Kind: described})
	}
	k.stored = func(i, state int) (string, []byte) {
		text := bytes.Replace(world.Widget(i, i, state), fmt.Appendf(nil, `"resourceVersion":"%s",`, world.Version(i)), nil, 1)
		text = append([]byte(`{"apiVersion":"example.com/v1","kind":"Widget",`), text[1:]...)
		var u unstructured.Unstructured
		harness.Check(u.UnmarshalJSON(text))
		return k.key(&u), text
	}
	return k
}
