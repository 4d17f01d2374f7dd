package sharing_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/internal/fieldsv1"
	"github.com/tributary-go/tributary/internal/sharing"
)

const benchPods = 4000

// benchPod is pod number i of ReplicaSets of 50; the benchmark module has pods that are closer to
// life.
func benchPod(i int) *corev1.Pod {
	app := fmt.Sprintf("service-%03d", i/50)
	at := metav1.NewTime(time.Unix(1_790_000_000+int64(i)*977, 0))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("%s-%05d", app, i), GenerateName: app + "-", UID: types.UID(fmt.Sprintf("0b0c1d2e-0000-4000-8000-%012d", i)),
			ResourceVersion: fmt.Sprint(1_000_000 + i), CreationTimestamp: at, Labels: map[string]string{"app": app, "tier": "front"},
			Annotations: map[string]string{"cni.example.com/address": fmt.Sprintf("10.1.%d.%d/32", i/250, i%250), "checksum/config": app}},
		Spec:   corev1.PodSpec{NodeName: fmt.Sprintf("node-%03d", i*7%83), ServiceAccountName: app, RestartPolicy: corev1.RestartPolicyAlways},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.1.%d.%d", i/250, i%250), StartTime: &at},
	}
	for _, manager := range []string{"kube-controller-manager", "kubelet"} {
		pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", APIVersion: "v1", Time: &at, FieldsType: "FieldsV1",
			FieldsV1: fieldsv1.Of(`{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:tier":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:env":{},"f:image":{}}}}}`)})
	}
	for _, name := range []string{"web", "sidecar"} {
		c := corev1.Container{Name: name, Image: "registry.example/" + app + "/" + name, Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}, Limits: corev1.ResourceList{"memory": resource.MustParse("256Mi")}},
			VolumeMounts: []corev1.VolumeMount{{Name: fmt.Sprintf("token-%05d", i), MountPath: "/var/run/secrets"}}}
		for v := range 8 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("BACKEND_%d", v), Value: fmt.Sprintf("https://%s-backend-%d.example/", app, v)})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, Ready: true, Image: c.Image,
			ContainerID: fmt.Sprintf("containerd://%064d", i), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}})
	}
	return pod
}

// BenchmarkPods decodes a list of pods, in the order of a list and in that of events, with a new
// memo each time.
func BenchmarkPods(b *testing.B) {
	var protobuf, text [][]byte
	for i := range benchPods {
		data, err := benchPod(i).Marshal()
		require.NoError(b, err)
		protobuf = append(protobuf, data)
		data, err = json.Marshal(benchPod(i))
		require.NoError(b, err)
		text = append(text, data)
	}
	forms := map[string]struct {
		all           [][]byte
		shared, plain func(*sharing.Memo, []byte, *corev1.Pod) error
	}{
		"protobuf": {protobuf, func(m *sharing.Memo, data []byte, p *corev1.Pod) error { return m.Unmarshal(data, p) },
			func(_ *sharing.Memo, data []byte, p *corev1.Pod) error { return p.Unmarshal(data) }},
		"json": {text, func(m *sharing.Memo, data []byte, p *corev1.Pod) error { return m.UnmarshalTyped(data, p) },
			func(_ *sharing.Memo, data []byte, p *corev1.Pod) error {
				return kjson.UnmarshalCaseSensitivePreserveInts(data, p)
			}},
	}
	for name, form := range forms {
		b.Run(name+"/list", func(b *testing.B) { decodeAll(b, form.all, form.shared) })
		b.Run(name+"/shuffled", func(b *testing.B) {
			all := append([][]byte(nil), form.all...)
			rand.New(rand.NewSource(1)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			decodeAll(b, all, form.shared)
		})
		b.Run(name+"/plain", func(b *testing.B) { decodeAll(b, form.all, form.plain) })
	}
}

func decodeAll(b *testing.B, all [][]byte, decode func(*sharing.Memo, []byte, *corev1.Pod) error) {
	b.Helper()
	b.ReportAllocs()
	held := make([]*corev1.Pod, len(all))
	var stats sharing.Stats
	for b.Loop() {
		memo := newMemo(b)
		memo.Listed(len(all), 0)
		for i, data := range all {
			held[i] = &corev1.Pod{}
			if err := decode(memo, data, held[i]); err != nil {
				b.Fatal(err)
			}
		}
		stats = memo.Stats()
	}
	objects := float64(len(all))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/objects, "ns/object")
	b.ReportMetric(float64(stats.Lookups)/objects, "lookups/object")
	b.ReportMetric(float64(stats.Same)/objects, "same/object")
}
