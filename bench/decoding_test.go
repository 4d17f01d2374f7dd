package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/bench/harness"
	"github.com/tributary-go/tributary/bench/world"
	"github.com/tributary-go/tributary/internal/sharing"
)

// message is an object with generated code.
type message interface {
	metav1.Object
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

// decoding is a kind of object as a row of the benchmark.
type decoding struct {
	name    string
	objects int
	new     func() message
	object  func(i, state int) message
}

// unique is a text that no other object has.
func unique(i, state, n int) string {
	return letters(rand.New(rand.NewPCG(uint64(i), uint64(state))), n)
}

func letters(random *rand.Rand, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('a' + random.IntN(26))
	}
	return string(text)
}

func meta(kind string, i, state int) metav1.ObjectMeta {
	at := metav1.NewTime(time.Unix(1_790_000_000+int64(i), 0))
	return metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-%06d", kind, i), Namespace: fmt.Sprint("team-", i/40), UID: types.UID(unique(i, 0, 36)), ResourceVersion: fmt.Sprint(1_000_000_000 + i + state*1000),
		CreationTimestamp: at, ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: ptr.To(metav1.NewTime(at.Add(time.Duration(state) * time.Second))), FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:holderIdentity":{},"f:renewTime":{}}}`)}},
	}
}

// randomPod is a pod that has nothing in common with others.
func randomPod(i, state int) message {
	random := rand.New(rand.NewPCG(uint64(i), 5))
	own := func() string { return letters(random, 24) }
	pod := &corev1.Pod{ObjectMeta: meta("pod", i, state)}
	pod.Labels = map[string]string{own(): own(), own(): own(), own(): own()}
	pod.Annotations = map[string]string{own(): own(), own(): own(), own(): own()}
	pod.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(letters(random, 400))
	pod.Spec = corev1.PodSpec{NodeName: own(), ServiceAccountName: own(), SchedulerName: own()}
	for range 3 {
		c := corev1.Container{Name: own(), Image: own(), Args: []string{own(), own(), own()}, WorkingDir: own()}
		for range 6 {
			c.Env = append(c.Env, corev1.EnvVar{Name: own(), Value: own()})
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: own(), MountPath: own()})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, c)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: own(), VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: own(), DefaultMode: ptr.To(int32(random.IntN(1 << 20)))}}})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: own(), Image: own(), ContainerID: own(), RestartCount: int32(state)})
	}
	pod.Status.PodIP = own()
	return pod
}

// images are 50 of the 400 of a cluster.
func images(node int) []int {
	return rand.New(rand.NewPCG(uint64(node), 7)).Perm(400)[:50]
}

func decodings() []decoding {
	pods := func(perSet int) func(i, state int) message {
		return func(i, state int) message { return world.Pods{PerSet: perSet}.Pod(i, i+state*10_000, state) }
	}
	pod := func() message { return &corev1.Pod{} }
	return []decoding{
		{name: "pods-50", objects: 4000, new: pod, object: pods(50)},
		{name: "pods-10", objects: 4000, new: pod, object: pods(10)},
		{name: "pods-3", objects: 4000, new: pod, object: pods(3)},
		{name: "pods-random", objects: 4000, new: pod, object: randomPod},
		{name: "leases", objects: 8000, new: func() message { return &coordinationv1.Lease{} }, object: func(i, state int) message {
			return &coordinationv1.Lease{ObjectMeta: meta("node", i, state), Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To(fmt.Sprintf("node-%06d", i)), LeaseDurationSeconds: ptr.To[int32](40),
				RenewTime: ptr.To(metav1.NewMicroTime(time.Unix(1_790_000_000+int64(state)*10, int64(i)*1000)))}}
		}},
		{name: "events", objects: 8000, new: func() message { return &corev1.Event{} }, object: func(i, state int) message {
			at := metav1.NewTime(time.Unix(1_790_000_000+int64(i), 0))
			return &corev1.Event{ObjectMeta: meta("event", i, state), Reason: "FailedScheduling", Message: "0/50 nodes are available: " + unique(i, state, 60), Type: "Warning",
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: fmt.Sprint("team-", i/40), Name: "pod-" + unique(i, 0, 10), UID: types.UID(unique(i, 1, 36)), APIVersion: "v1", ResourceVersion: fmt.Sprint(i)},
				Source:         corev1.EventSource{Component: "default-scheduler"}, FirstTimestamp: at, LastTimestamp: at, Count: int32(state + 1)}
		}},
		{name: "endpointslices", objects: 400, new: func() message { return &discoveryv1.EndpointSlice{} }, object: func(i, state int) message {
			slice := &discoveryv1.EndpointSlice{ObjectMeta: meta("slice", i, state), AddressType: "IPv4", Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](8080)}}}
			for e := range 80 {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", i/250, i%250, e)},
					Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(e != state%80), Serving: ptr.To(true), Terminating: ptr.To(false)},
					NodeName:   ptr.To(fmt.Sprintf("node-%04d", (i*80+e)*7%500)), Zone: ptr.To("zone-a"),
					TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "team", Name: fmt.Sprintf("pod-%d-%s", i, unique(i*80+e, 0, 5)), UID: types.UID(unique(i*80+e, 1, 36))}})
			}
			return slice
		}},
		{name: "nodes", objects: 1000, new: func() message { return &corev1.Node{} }, object: func(i, state int) message {
			node := &corev1.Node{ObjectMeta: meta("node", i, state)}
			node.Labels = map[string]string{"kubernetes.io/hostname": node.Name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "topology.kubernetes.io/zone": fmt.Sprint("zone-", i%3)}
			for c := range 5 {
				node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(fmt.Sprint("Condition", c)), Status: "False",
					LastHeartbeatTime: metav1.NewTime(time.Unix(1_790_000_000+int64(state*300+i), 0)), LastTransitionTime: node.CreationTimestamp, Reason: "KubeletHasSufficient", Message: "kubelet has sufficient resources"})
			}
			for _, c := range images(i) {
				node.Status.Images = append(node.Status.Images, corev1.ContainerImage{Names: []string{
					fmt.Sprintf("registry.example.com/image-%d@sha256:%s", c, unique(c, 0, 64)), fmt.Sprintf("registry.example.com/image-%d:v1", c)}, SizeBytes: int64(c) << 20})
			}
			return node
		}},
		{name: "services", objects: 4000, new: func() message { return &corev1.Service{} }, object: func(i, state int) message {
			s := &corev1.Service{ObjectMeta: meta("service", i, state), Spec: corev1.ServiceSpec{ClusterIP: fmt.Sprintf("10.96.%d.%d", i/250, i%250), ClusterIPs: []string{fmt.Sprintf("10.96.%d.%d", i/250, i%250)},
				Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: "TCP"}}, Selector: map[string]string{"app": fmt.Sprint("service-", i)}, Type: "ClusterIP", SessionAffinity: "None",
				IPFamilies: []corev1.IPFamily{"IPv4"}, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicySingleStack), InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyCluster)}}
			s.Labels = map[string]string{"app": fmt.Sprint("service-", i), "team": fmt.Sprint("team-", i/40)}
			s.Annotations = map[string]string{"state": fmt.Sprint(state)}
			return s
		}},
		{name: "configmaps-900KB", objects: 20, new: func() message { return &corev1.ConfigMap{} }, object: func(i, state int) message {
			return &corev1.ConfigMap{ObjectMeta: meta("config", i, state), Data: map[string]string{"data": unique(i, state, 900<<10)}}
		}},
		{name: "configmaps-4KB", objects: 2000, new: func() message { return &corev1.ConfigMap{} }, object: func(i, state int) message {
			return &corev1.ConfigMap{ObjectMeta: meta("config", i, state), Data: map[string]string{"a": unique(i, state, 2000), "b": unique(i, 0, 1000), "c": unique(i, 1, 1000)}}
		}},
	}
}

const states = 4

// BenchmarkDecoding decodes lists and changes of many kinds, by interning and by generated code,
// with user CPU and live heap beside the time.
func BenchmarkDecoding(b *testing.B) {
	for _, kind := range decodings() {
		var wire [states][][]byte
		for i := range kind.objects {
			for state := range states {
				object := kind.object(i, state)
				data, err := object.Marshal()
				require.NoError(b, err)
				wire[state] = append(wire[state], data)
			}
		}
		shuffled := append([][]byte(nil), wire[0]...)
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for _, order := range []string{"list", "shuffled"} {
			all := wire[0]
			if order == "shuffled" {
				all = shuffled
			}
			b.Run(kind.name+"/"+order+"/ours", func(b *testing.B) {
				listing(b, kind, all, func() func([]byte, message) error {
					memo, err := sharing.New()
					require.NoError(b, err)
					memo.Listed(len(all), 0)
					return func(data []byte, into message) error { return memo.Unmarshal(data, into) }
				})
			})
		}
		b.Run(kind.name+"/list/generated", func(b *testing.B) {
			listing(b, kind, wire[0], func() func([]byte, message) error {
				return func(data []byte, into message) error { return into.Unmarshal(data) }
			})
		})
		b.Run(kind.name+"/first-changes/ours", func(b *testing.B) { firstChanges(b, kind, wire) })
		b.Run(kind.name+"/changes/ours", func(b *testing.B) {
			memo, err := sharing.New()
			require.NoError(b, err)
			notes := make([]sharing.Notes, kind.objects)
			changing(b, kind, wire, func(i int, data []byte, last, into message) (err error) {
				notes[i], err = memo.UnmarshalAfter(sharing.Last{Changes: true, Object: last, Notes: notes[i]}, data, into)
				return err
			})
		})
		b.Run(kind.name+"/changes/generated", func(b *testing.B) {
			changing(b, kind, wire, func(_ int, data []byte, _, into message) error { return into.Unmarshal(data) })
		})
	}
}

func listing(b *testing.B, kind decoding, all [][]byte, decoder func() func([]byte, message) error) {
	b.Helper()
	held := make([]message, len(all))
	before, used := harness.Live(), harness.CPU()
	b.ReportAllocs()
	for b.Loop() {
		clear(held)
		decode := decoder()
		for i, data := range all {
			held[i] = kind.new()
			if err := decode(data, held[i]); err != nil {
				b.Fatal(err)
			}
		}
	}
	report(b, len(all), used)
	b.ReportMetric((harness.Live()-before)/float64(len(all)), "heap-B/object")
	runtime.KeepAlive(held)
}

// changing decodes state after state of each object. The objects stay, as in a store.
func changing(b *testing.B, kind decoding, wire [states][][]byte, decode func(i int, data []byte, last, into message) error) {
	b.Helper()
	held := make([]message, kind.objects)
	round := func(state int) {
		for i, data := range wire[state] {
			into := kind.new()
			if err := decode(i, data, held[i], into); err != nil {
				b.Fatal(err)
			}
			held[i] = into
		}
	}
	for state := range states {
		round(state)
	}
	used := harness.CPU()
	b.ReportAllocs()
	state := 0
	for b.Loop() {
		state++
		round(state % states)
	}
	report(b, kind.objects, used)
}

// firstChanges decodes one change of each object after a list, by a new memo each time. The list is
// not in the figures.
func firstChanges(b *testing.B, kind decoding, wire [states][][]byte) {
	b.Helper()
	held := make([]message, kind.objects)
	var used time.Duration
	b.ReportAllocs()
	for b.Loop() {
		memo, err := sharing.New()
		require.NoError(b, err)
		bytes := 0
		b.StopTimer()
		for i, data := range wire[0] {
			held[i] = kind.new()
			require.NoError(b, memo.Unmarshal(data, held[i]))
			bytes += len(data)
		}
		memo.Listed(kind.objects, bytes)
		b.StartTimer()
		began := harness.CPU()
		for i, data := range wire[1] {
			into := kind.new()
			if _, err := memo.UnmarshalAfter(sharing.Last{Changes: true, Object: held[i]}, data, into); err != nil {
				b.Fatal(err)
			}
			held[i] = into
		}
		used += harness.CPU() - began
	}
	report(b, kind.objects, harness.CPU()-used)
	runtime.KeepAlive(held)
}

func report(b *testing.B, objects int, used time.Duration) {
	b.Helper()
	b.ReportMetric(float64((harness.CPU()-used).Nanoseconds())/float64(b.N)/float64(objects), "cpu-ns/object")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(objects), "ns/object")
}
