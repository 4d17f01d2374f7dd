package listwatch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/internal/fieldsv1"
	"github.com/tributary-go/tributary/store"
)

const (
	jsonType     = "application/json"
	protobufType = "application/vnd.kubernetes.protobuf"
)

var encodings = []string{jsonType, protobufType}

var (
	v1Version   = schema.GroupVersion{Version: "v1"}
	metaVersion = schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}
)

// metaCodecs encodes the metadata forms, which the clientset's scheme does not know.
var metaCodecs = func() serializer.CodecFactory {
	s := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(s); err != nil {
		panic(err)
	}
	metav1.AddToGroupVersion(s, v1Version)
	return serializer.NewCodecFactory(s)
}()

func encoder(t testing.TB, media string, gv schema.GroupVersion) runtime.Encoder {
	t.Helper()
	codecs := scheme.Codecs
	if gv == metaVersion {
		codecs = metaCodecs
	}
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
	require.True(t, ok)
	return codecs.EncoderForVersion(info.Serializer, gv)
}

// encode returns a body as an API server encodes it.
func encode(t testing.TB, media string, gv schema.GroupVersion, obj runtime.Object) []byte {
	t.Helper()
	var data bytes.Buffer
	require.NoError(t, encoder(t, media, gv).Encode(obj, &data))
	return data.Bytes()
}

// frames returns the body of a watch as an API server encodes it.
func frames(t testing.TB, media string, gv schema.GroupVersion, events ...watch.Event) []byte {
	t.Helper()
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	require.True(t, ok)
	var body bytes.Buffer
	envelope := scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, v1Version)
	stream := streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(&body), envelope)
	for _, event := range events {
		embedded := encoder(t, media, gv)
		if event.Type == watch.Error {
			embedded = encoder(t, media, v1Version)
		}
		require.NoError(t, restwatch.NewEncoder(stream, embedded).Encode(&event))
	}
	return body.Bytes()
}

func podList(n int) *corev1.PodList {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{
		ResourceVersion: "4711", Continue: "next", RemainingItemCount: ptr.To[int64](7),
	}}
	for i := range n {
		list.Items = append(list.Items, *pod(i))
	}
	return list
}

// podEvents changes each of n pods, and ends with the bookmark that ends initial events.
func podEvents(n int) (events []watch.Event) {
	kinds := []watch.EventType{watch.Added, watch.Modified, watch.Deleted}
	for i := range n {
		events = append(events, watch.Event{Type: kinds[i%len(kinds)], Object: pod(i)})
	}
	return append(events, watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "5000", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}})
}

// pod is a pod as a node's kubelet leaves it: some 5 KiB, half of them managed fields and status.
func pod(i int) *corev1.Pod {
	started := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, i%60, 0, time.UTC))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-7d4b9c6f5-%05d", i), Namespace: "shop", GenerateName: "web-7d4b9c6f5-",
			UID: types.UID(fmt.Sprintf("0b0c1d2e-0000-4000-8000-%012d", i)), ResourceVersion: fmt.Sprint(1000 + i),
			CreationTimestamp: started,
			Labels:            map[string]string{"app": "web", "pod-template-hash": "7d4b9c6f5", "tier": "front"},
			Annotations:       map[string]string{"checksum/config": "9f86d081884c7d65", "note": "a \"quoted\" \\ line\nü"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-7d4b9c6f5",
				UID: "5f6a7b8c-0000-4000-8000-000000000001", Controller: ptr.To(true)}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				managed("kube-controller-manager", "", `{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:tier":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:env":{},"f:image":{},"f:name":{}}},"f:nodeName":{}}}`, started),
				managed("kubelet", "status", `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}},"f:containerStatuses":{},"f:phase":{},"f:podIP":{}}}`, started),
			},
		},
		Spec: corev1.PodSpec{
			NodeName: "node-1", ServiceAccountName: "web", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{container("web", 8080), container("sidecar", 15001)},
			Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "web"}, DefaultMode: ptr.To[int32](0o644)}}}},
			Tolerations: []corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.1.%d.%d", i/250, i%250), StartTime: &started,
			PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.1.%d.%d", i/250, i%250)}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: started},
				{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: started}},
			ContainerStatuses: []corev1.ContainerStatus{status("web", started), status("sidecar", started)},
		},
	}
}

func managed(manager, subresource, fields string, at metav1.Time) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate,
		APIVersion: "v1", Time: &at, FieldsType: "FieldsV1", FieldsV1: fieldsv1.Of(fields)}
}

func container(name string, port int32) corev1.Container {
	c := corev1.Container{
		Name: name, Image: "registry.example/" + name + ":1.2.3", Args: []string{"--port", fmt.Sprint(port), "--verbose"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("256Mi")},
		},
		LivenessProbe: &corev1.Probe{PeriodSeconds: 10, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/healthz", Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}}},
		VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/web", ReadOnly: true}},
	}
	for i := range 8 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: fmt.Sprintf("https://backend-%d.example/", i)})
	}
	return c
}

func status(name string, at metav1.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, Ready: true, Started: ptr.To(true), Image: "registry.example/" + name + ":1.2.3",
		ImageID:     "registry.example/" + name + "@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		ContainerID: "containerd://60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}}
}

func node(i int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), ResourceVersion: fmt.Sprint(i), Labels: map[string]string{"zone": "a"}},
		Spec:       corev1.NodeSpec{PodCIDR: "10.1.0.0/24", Unschedulable: i%2 == 0},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{"cpu": resource.MustParse("8")},
			Images: []corev1.ContainerImage{{Names: []string{"registry.example/web:1.2.3"}, SizeBytes: 1 << 30}}},
	}
}

func configMap(i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("settings-%d", i), ResourceVersion: fmt.Sprint(i)},
		Data:       map[string]string{"a.yaml": "k: \"v\"\n", "empty": "", "odd": "{[\\\"]}"},
		BinaryData: map[string][]byte{"blob": {0, 1, 2, 0xff}}, Immutable: ptr.To(true),
	}
}

// unstructuredFrames returns the JSON body of a watch of custom resources.
func unstructuredFrames(t testing.TB, events ...watch.Event) []byte {
	t.Helper()
	var body bytes.Buffer
	for _, event := range events {
		raw, err := runtime.Encode(unstructured.UnstructuredJSONScheme, event.Object)
		require.NoError(t, err)
		frame, err := json.Marshal(&metav1.WatchEvent{Type: string(event.Type), Object: runtime.RawExtension{Raw: raw}})
		require.NoError(t, err)
		body.Write(append(frame, '\n'))
	}
	return body.Bytes()
}

func listMeta(t testing.TB, list runtime.Object) metav1.ListMeta {
	t.Helper()
	m, err := meta.ListAccessor(list)
	require.NoError(t, err)
	return metav1.ListMeta{ResourceVersion: m.GetResourceVersion(), Continue: m.GetContinue(), RemainingItemCount: m.GetRemainingItemCount()}
}

func itemsOf[T store.Object](t testing.TB, list runtime.Object) (items []T) {
	t.Helper()
	require.NoError(t, meta.EachListItem(list, func(obj runtime.Object) error {
		items = append(items, obj.(T))
		return nil
	}))
	return items
}
