// Package world makes the objects that the benchmarks are about: pods as a busy cluster has them,
// and a custom resource. An object depends on its number alone, so that every process makes the
// same ones.
package world

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Pods is a number of running pods, PerSet of which come from each ReplicaSet. A pod takes some 8.2
// KB of protobuf, of which half are managedFields. Its name, UID, version, times, node, addresses,
// container IDs and token volume are its own, and so are the notes of network plugin and kubelet
// about its address. The rest is its ReplicaSet's.
type Pods struct {
	PerSet int
	// Varied pods differ in more, see vary. Their ReplicaSets have 3, 10 and 50 pods, in place of
	// PerSet.
	Varied bool
}

const podsPerNode = 60

// Version is the resource version of number n, always of ten digits.
func Version(n int) string { return fmt.Sprint(1_000_000_000 + n) }

// Pod is pod number i in its state at version; odd states are not ready.
func (p Pods) Pod(i, version, state int) *corev1.Pod {
	set := p.set(i)
	random := rand.New(rand.NewPCG(uint64(i), 7))
	pod := &corev1.Pod{ObjectMeta: set.meta(random), Spec: set.spec(random)}
	pod.ResourceVersion = Version(version)
	node := rand.New(rand.NewPCG(uint64(i), 11)).IntN(max(1, 50_000/podsPerNode))
	pod.Spec.NodeName = fmt.Sprintf("node-%04d.eu-central-1.compute.internal", node)
	set.status(pod, random, node, state)
	if p.Varied {
		set.vary(pod, i, state)
	}
	return pod
}

// Kind is that of pods, by this name.
func (p Pods) Kind(name string) Kind {
	return Kind{Name: name, Version: core, Resource: "pods", ByKey: p.Varied,
		Object: func(i, version, state int) Object { return p.Pod(i, version, state) }}
}

func (p Pods) set(i int) replicaSet {
	if p.Varied {
		return variedSet(i)
	}
	return replicaSetOf(i / p.PerSet)
}

// replicaSet is a ReplicaSet of an application in a namespace, all by their numbers.
type replicaSet struct{ number, application, team int }

// replicaSetOf has two ReplicaSets of each application, and four in each namespace.
func replicaSetOf(number int) replicaSet {
	return replicaSet{number: number, application: number / 2, team: number / 4}
}

func (s replicaSet) app() string       { return fmt.Sprintf("service-%05d", s.application) }
func (s replicaSet) name() string      { return fmt.Sprintf("%s-%s", s.app(), s.hash()) }
func (s replicaSet) namespace() string { return fmt.Sprintf("team-%04d", s.team) }
func (s replicaSet) image(of string) string {
	return fmt.Sprintf("registry.example.com/team-%04d/%s:v1.%d.%d", s.application/2, of, s.number%9, s.number%23)
}

func (s replicaSet) hash() string { return letters(s.random(3), 10) }

// random is a source of values that all pods of the ReplicaSet have.
func (s replicaSet) random(seed uint64) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(s.number), seed))
}

func letters(random *rand.Rand, n int) string {
	const safe = "bcdfghjklmnpqrstvwxz2456789" // of which the API server makes names
	var b strings.Builder
	for range n {
		b.WriteByte(safe[random.IntN(len(safe))])
	}
	return b.String()
}

func hex(random *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%x", random.IntN(16))
	}
	return b.String()
}

func uid(random *rand.Rand) types.UID {
	h := hex(random, 32)
	return types.UID(h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:])
}

var epoch = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)

func after(random *rand.Rand) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(random.IntN(600_000)) * time.Second))
}

func (s replicaSet) meta(random *rand.Rand) metav1.ObjectMeta {
	created := after(random)
	started := metav1.NewTime(created.Add(9 * time.Second))
	ip := address(random)
	return metav1.ObjectMeta{
		Name: s.name() + "-" + letters(random, 5), GenerateName: s.name() + "-", Namespace: s.namespace(),
		UID: uid(random), CreationTimestamp: created, Generation: 1,
		Labels: map[string]string{
			"app.kubernetes.io/name": s.app(), "app.kubernetes.io/instance": s.app() + "-production", "app.kubernetes.io/part-of": s.namespace(),
			"app.kubernetes.io/version": fmt.Sprintf("v1.%d.%d", s.number%9, s.number%23), "pod-template-hash": s.hash(), "team": s.namespace(),
		},
		Annotations: map[string]string{
			"cni.projectcalico.org/containerID": hex(random, 64), "cni.projectcalico.org/podIP": ip + "/32", "cni.projectcalico.org/podIPs": ip + "/32",
			"checksum/config": hex(s.random(5), 64), "prometheus.io/scrape": "true", "prometheus.io/port": "9090",
		},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: s.name(),
			UID: uid(s.random(9)), Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}},
		ManagedFields: []metav1.ManagedFieldsEntry{
			entry("kube-controller-manager", "", created, controllerFields),
			entry("calico", "status", started, calicoFields),
			entry("kubelet", "status", started, strings.ReplaceAll(kubeletFields, "IP", ip)),
		},
	}
}

func address(random *rand.Rand) string {
	return fmt.Sprintf("10.%d.%d.%d", 64+random.IntN(64), random.IntN(256), 1+random.IntN(254))
}

func entry(manager, subresource string, at metav1.Time, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource}
}

func (s replicaSet) spec(random *rand.Rand) corev1.PodSpec {
	token := "kube-api-access-" + letters(random, 5)
	return corev1.PodSpec{
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: s.app() + "-config"}, DefaultMode: ptr.To[int32](420)}}},
			{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: token, VolumeSource: corev1.VolumeSource{Projected: tokenSources()}},
		},
		Containers:    []corev1.Container{s.container(s.app(), token, 6), s.container("log-forwarder", token, 1)},
		RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: ptr.To[int64](30), DNSPolicy: corev1.DNSClusterFirst,
		ServiceAccountName: s.app(), DeprecatedServiceAccount: s.app(), SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)},
		SchedulerName: "default-scheduler", Priority: ptr.To[int32](0), EnableServiceLinks: ptr.To(true), PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority),
		Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)},
		},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": s.app()}}}},
	}
}

// tokenSources come from the API server's admission, which adds them to each pod.
func tokenSources() *corev1.ProjectedVolumeSource {
	field := &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}
	return &corev1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](420), Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: ptr.To[int64](3607), Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
			Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: field}}}},
	}}
}

func (s replicaSet) container(name, token string, variables int) corev1.Container {
	c := corev1.Container{
		Name: name, Image: s.image(name), Args: []string{"--config=/etc/service/config.yaml", "--log-format=json", "--listen=:8080"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}, {Name: "metrics", ContainerPort: 9090, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
		VolumeMounts:           []corev1.VolumeMount{{Name: "config", ReadOnly: true, MountPath: "/etc/service"}, {Name: "cache", MountPath: "/var/cache/service"}, {Name: token, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
		ReadinessProbe:         probe("/readyz", 5),
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile, ImagePullPolicy: corev1.PullIfNotPresent,
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		Env: []corev1.EnvVar{
			{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
			{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"}}},
		},
	}
	for i := range variables {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("BACKEND_%02d_URL", i), Value: fmt.Sprintf("http://%s-backend-%d.%s.svc:8080", s.app(), i, s.namespace())})
	}
	return c
}

func probe(path string, period int32) *corev1.Probe {
	return &corev1.Probe{InitialDelaySeconds: 5, TimeoutSeconds: 2, PeriodSeconds: period, SuccessThreshold: 1, FailureThreshold: 3,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}}}
}

func (s replicaSet) status(pod *corev1.Pod, random *rand.Rand, node, state int) {
	started := *pod.ManagedFields[len(pod.ManagedFields)-1].Time
	ip := strings.TrimSuffix(pod.Annotations["cni.projectcalico.org/podIP"], "/32")
	host := fmt.Sprintf("172.16.%d.%d", node/250, 1+node%250)
	ready := corev1.ConditionTrue
	if state%2 == 1 {
		ready = corev1.ConditionFalse
		started = metav1.NewTime(started.Add(time.Duration(state) * time.Minute))
	}
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, at metav1.Time) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, ObservedGeneration: 1, Status: status, LastTransitionTime: at}
	}
	pod.Status = corev1.PodStatus{
		ObservedGeneration: 1, Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable,
		Conditions: []corev1.PodCondition{
			condition(corev1.PodReadyToStartContainers, corev1.ConditionTrue, started), condition(corev1.PodInitialized, corev1.ConditionTrue, started),
			condition(corev1.PodReady, ready, started), condition(corev1.ContainersReady, ready, started),
			condition(corev1.PodScheduled, corev1.ConditionTrue, pod.CreationTimestamp),
		},
		HostIP: host, HostIPs: []corev1.HostIP{{IP: host}}, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &pod.CreationTimestamp,
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, containerStatus(c, random, state%2 == 0,
			corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}}))
	}
}

func containerStatus(c corev1.Container, random *rand.Rand, ready bool, state corev1.ContainerState) corev1.ContainerStatus {
	status := corev1.ContainerStatus{Name: c.Name, State: state, Ready: ready, Started: ptr.To(true), Image: c.Image,
		ImageID:     c.Image + "@sha256:" + hex(rand.New(rand.NewPCG(uint64(len(c.Image)), 1)), 64),
		ContainerID: "containerd://" + hex(random, 64), AllocatedResources: c.Resources.Requests, Resources: c.Resources.DeepCopy()}
	for _, mount := range c.VolumeMounts {
		status.VolumeMounts = append(status.VolumeMounts, corev1.VolumeMountStatus{Name: mount.Name, MountPath: mount.MountPath,
			ReadOnly: mount.ReadOnly, RecursiveReadOnly: ptr.To(corev1.RecursiveReadOnlyDisabled)})
	}
	return status
}
