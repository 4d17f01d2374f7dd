package world

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Object is an object with a protobuf form.
type Object interface {
	metav1.Object
	Marshal() ([]byte, error)
}

// Kind is a built-in kind, as a busy cluster has its objects.
type Kind struct {
	Name     string
	Version  schema.GroupVersion
	Resource string
	// Large objects come in a hundredth of the number.
	Large bool
	// Object is number i in its state at version.
	Object func(i, version, state int) Object
	// ByKey orders its objects by namespace and name. The others come by their numbers.
	ByKey bool
}

// Order has the numbers first to first+count-1, in the order of a list.
func (k Kind) Order(first, count int) []int {
	order := make([]int, count)
	for i := range order {
		order[i] = first + i
	}
	if !k.ByKey {
		return order
	}
	keys := make(map[int]string, count)
	for _, i := range order {
		object := k.Object(i, 0, 0)
		keys[i] = object.GetNamespace() + "/" + object.GetName()
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	return order
}

var core = schema.GroupVersion{Version: "v1"}

// Kinds are the kinds of the benchmarks besides pods and widgets: small ones, large ones, and
// objects that share nothing.
var Kinds = []Kind{
	{"Service", core, "services", false, service, false},
	{"Node", core, "nodes", false, node, false},
	{"EndpointSlice", discoveryv1.SchemeGroupVersion, "endpointslices", false, endpointSlice, false},
	{"Lease", coordinationv1.SchemeGroupVersion, "leases", false, lease, false},
	{"Event", core, "events", false, event, false},
	{"NetworkPolicy", networkingv1.SchemeGroupVersion, "networkpolicies", false, networkPolicy, false},
	{"ConfigMap of a dashboard", core, "configmaps", false, dashboard, false},
	{"Secret of a Helm release", core, "secrets", false, release, false},
	{"Secret", core, "secrets", false, func(i, version, state int) Object { return secret(i, version, state, 4<<10) }, false},
	{"Secret of 500 KB", core, "secrets", true, func(i, version, state int) Object { return secret(i, version, state, 500_000) }, false},
	{"ConfigMap of 900 KB", core, "configmaps", true, configMap, false},
	{"Pod of random strings", core, "pods", false, randomPod, false},
	Pods{Varied: true}.Kind(VariedPod),
}

// VariedPod is the kind of pods that differ in more.
const VariedPod = "Pod that differs in more"

// KindOf is the kind with a name, of pods 50 of a ReplicaSet.
func KindOf(name string) Kind {
	for _, k := range slices.Concat([]Kind{Pods{PerSet: 50}.Kind("Pod")}, Kinds, RestKinds) {
		if k.Name == name {
			return k
		}
	}
	panic(fmt.Sprintf("there is no kind %q", name)) // a row of our own
}

// meta is the metadata of number i, of which one manager wrote all.
func meta(i, version int, name, fields string) metav1.ObjectMeta {
	random := rand.New(rand.NewPCG(uint64(i), 17))
	created := after(random)
	return metav1.ObjectMeta{
		Name: name, Namespace: replicaSetOf(i / 20).namespace(), UID: uid(random), ResourceVersion: Version(version), CreationTimestamp: created,
		Labels:        map[string]string{"app.kubernetes.io/name": replicaSetOf(i / 20).app(), "team": replicaSetOf(i / 20).namespace()},
		ManagedFields: []metav1.ManagedFieldsEntry{entry("kube-controller-manager", "", created, fields)},
	}
}

// changing is a source of the values that each state of number i has anew.
func changing(i, state int) *rand.Rand { return rand.New(rand.NewPCG(uint64(i), uint64(1000+state))) }

func service(i, version, state int) Object {
	app := replicaSetOf(i / 20).app()
	s := &corev1.Service{
		ObjectMeta: meta(i, version, fmt.Sprintf("%s-%05d", app, i), `{"f:spec":`+set("clusterIP", "internalTrafficPolicy", "ports", "selector", "type")+`}`),
		Spec: corev1.ServiceSpec{
			Ports:    []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromString("http")}},
			Selector: map[string]string{"app.kubernetes.io/name": app}, ClusterIP: address(rand.New(rand.NewPCG(uint64(i), 19))),
			Type: corev1.ServiceTypeClusterIP, SessionAffinity: corev1.ServiceAffinityNone, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicySingleStack), InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyCluster),
		},
	}
	s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	s.Annotations = map[string]string{"example.com/revision": fmt.Sprint(state)}
	return s
}

const imagesOfACluster = 400

func node(i, version, state int) Object {
	beat := metav1.NewTime(epoch.Add(time.Duration(changing(i, state).IntN(600_000)) * time.Second))
	n := &corev1.Node{ObjectMeta: meta(i, version, fmt.Sprintf("node-%05d.eu-central-1.compute.internal", i), kubeletFields)}
	n.Namespace = ""
	n.Labels = map[string]string{
		"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": n.Name,
		"topology.kubernetes.io/zone": fmt.Sprintf("eu-central-1%c", 'a'+i%3), "node.kubernetes.io/instance-type": "m6i.4xlarge",
	}
	n.Spec.ProviderID = fmt.Sprintf("aws:///eu-central-1a/i-%017x", i)
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64207728Ki"),
		corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("104845292Ki"),
	}
	n.Status = corev1.NodeStatus{
		Capacity: amounts, Allocatable: amounts,
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address(rand.New(rand.NewPCG(uint64(i), 19)))}, {Type: corev1.NodeHostName, Address: n.Name}},
		NodeInfo: corev1.NodeSystemInfo{MachineID: hex(rand.New(rand.NewPCG(uint64(i), 23)), 32), KernelVersion: "6.12.40-63.114.amzn2023.x86_64",
			OSImage: "Amazon Linux 2023", ContainerRuntimeVersion: "containerd://2.1.4", KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "amd64"},
	}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, LastHeartbeatTime: beat,
			LastTransitionTime: n.CreationTimestamp, Reason: "Kubelet" + string(kind), Message: "kubelet reports its state"})
	}
	// A kubelet reports the 50 largest.
	for _, image := range rand.New(rand.NewPCG(uint64(i), 27)).Perm(imagesOfACluster)[:50] {
		repository := fmt.Sprintf("registry.example.com/team-%04d/service-%02d", image/20, image%20)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{SizeBytes: int64(20+image) << 20,
			Names: []string{repository + "@sha256:" + hex(rand.New(rand.NewPCG(uint64(image), 29)), 64), fmt.Sprintf("%s:v1.%d.0", repository, image%7)}})
	}
	return n
}

// endpointSlice has 80 endpoints, each of its own.
func endpointSlice(i, version, state int) Object {
	random := rand.New(rand.NewPCG(uint64(i), 31))
	app := replicaSetOf(i).app()
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  meta(i, version, fmt.Sprintf("%s-%05d", app, i), `{"f:endpoints":{},"f:ports":{}}`),
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](8080), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}
	for n := range 80 {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address(random)}, NodeName: ptr.To(fmt.Sprintf("node-%04d.eu-central-1.compute.internal", random.IntN(800))),
			Zone:       ptr.To(fmt.Sprintf("eu-central-1%c", 'a'+n%3)),
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(n != state), Serving: ptr.To(true), Terminating: ptr.To(false)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: s.Namespace, Name: app + "-" + letters(random, 5), UID: uid(random)},
		})
	}
	return s
}

func lease(i, version, state int) Object {
	name := fmt.Sprintf("node-%05d.eu-central-1.compute.internal", i)
	l := &coordinationv1.Lease{
		ObjectMeta: meta(i, version, name, `{"f:spec":`+set("holderIdentity", "leaseDurationSeconds", "renewTime")+`}`),
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: ptr.To[int32](40),
			RenewTime: ptr.To(metav1.NewMicroTime(epoch.Add(time.Duration(changing(i, state).Int64N(6e14)))))},
	}
	l.Namespace, l.Labels = "kube-node-lease", nil
	return l
}

func event(i, version, state int) Object {
	random := rand.New(rand.NewPCG(uint64(i), 37))
	set := replicaSetOf(i / 20)
	e := &corev1.Event{
		ObjectMeta:     meta(i, version, set.name()+"-"+letters(random, 5)+"."+hex(random, 16), `{"f:count":{},"f:lastTimestamp":{},"f:message":{}}`),
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: set.namespace(), Name: set.name() + "-" + letters(random, 5), UID: uid(random)},
		Reason:         "BackOff", Type: corev1.EventTypeWarning, Count: int32(1 + state),
		Message: "Back-off restarting failed container service in pod " + set.name() + "-" + letters(random, 5) + "_" + set.namespace() + "(" + string(uid(random)) + ")",
		Source:  corev1.EventSource{Component: "kubelet", Host: fmt.Sprintf("node-%04d", random.IntN(800))},
	}
	e.FirstTimestamp, e.LastTimestamp = e.CreationTimestamp, metav1.NewTime(epoch.Add(time.Duration(changing(i, state).IntN(600_000))*time.Second))
	return e
}

func secret(i, version, state, size int) Object {
	data := make([]byte, size)
	random := changing(i, state)
	for at := range data {
		data[at] = byte(random.Uint32())
	}
	return &corev1.Secret{ObjectMeta: meta(i, version, fmt.Sprintf("secret-%05d", i), `{"f:data":{},"f:type":{}}`),
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"payload": data}}
}

func configMap(i, version, state int) Object {
	return &corev1.ConfigMap{ObjectMeta: meta(i, version, fmt.Sprintf("config-%05d", i), `{"f:data":{}}`),
		Data: map[string]string{"dashboard.json": letters(changing(i, state), 900_000)}}
}

// randomPod has no string in common with another pod, nor with its own last state but for its name.
func randomPod(i, version, state int) Object {
	pod := Pods{PerSet: 1}.Pod(i, version, state)
	pod.ManagedFields = nil
	scramble(reflect.ValueOf(&pod.ObjectMeta).Elem(), rand.New(rand.NewPCG(uint64(i), 41)))
	pod.ResourceVersion = Version(version)
	random := changing(i, state)
	for _, part := range []any{&pod.Labels, &pod.Annotations, &pod.Spec, &pod.Status} {
		scramble(reflect.ValueOf(part).Elem(), random)
	}
	return pod
}

// scramble puts letters in the place of each string.
func scramble(v reflect.Value, random *rand.Rand) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(letters(random, v.Len()))
	case reflect.Pointer:
		if !v.IsNil() {
			scramble(v.Elem(), random)
		}
	case reflect.Slice:
		for i := range v.Len() {
			scramble(v.Index(i), random)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				scramble(v.Field(i), random)
			}
		}
	case reflect.Map:
		if v.Type().Elem().Kind() != reflect.String {
			return // quantities
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		scrambled := reflect.MakeMap(v.Type())
		for _, key := range keys {
			scrambled.SetMapIndex(reflect.ValueOf(letters(random, key.Len())), reflect.ValueOf(letters(random, v.MapIndex(key).Len())))
		}
		v.Set(scrambled)
	}
}
