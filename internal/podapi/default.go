package podapi

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// legacyInitAnnotations held init containers before the field existed. 1.36 drops them.
var legacyInitAnnotations = []string{
	"pod.alpha.kubernetes.io/init-container-statuses",
	"pod.alpha.kubernetes.io/init-containers",
	"pod.beta.kubernetes.io/init-container-statuses",
	"pod.beta.kubernetes.io/init-containers",
}

// Default fills in the fields that a manifest omits, and gives the pod the form in which the server
// would return it. Old aliases then agree with the fields that replaced them, and apiVersion and
// kind are empty, as in a list. It modifies the pod in place, and is idempotent.
func (r Release) Default(pod *corev1.Pod) {
	pod.APIVersion, pod.Kind = "", ""
	if r < R137 {
		for _, key := range legacyInitAnnotations {
			delete(pod.Annotations, key)
		}
	}
	r.DropNewer(pod)
	r.defaultResources(pod)
	defaultSpec(&pod.Spec)
	for i := range pod.Spec.Volumes {
		defaultVolume(&pod.Spec.Volumes[i])
	}
	for _, container := range containers(&pod.Spec) {
		defaultContainer(container)
	}
	roundResources(pod)
	defaultStatus(&pod.Status)
}

func defaultSpec(spec *corev1.PodSpec) {
	setDefault(&spec.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&spec.SchedulerName, corev1.DefaultSchedulerName)
	setDefaultPtr(&spec.SecurityContext, corev1.PodSecurityContext{})
	setDefaultPtr(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	setDefaultPtr(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	if *spec.TerminationGracePeriodSeconds < 0 {
		*spec.TerminationGracePeriodSeconds = 1
	}
	setDefault(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
	if spec.HostNetwork {
		for i := range spec.Containers {
			openHostPorts(spec.Containers[i].Ports)
		}
		for i := range spec.InitContainers {
			openHostPorts(spec.InitContainers[i].Ports)
		}
	}
}

// openHostPorts sets the host port of each port, which in the host's network is the port itself.
func openHostPorts(ports []corev1.ContainerPort) {
	for i := range ports {
		setDefault(&ports[i].HostPort, ports[i].ContainerPort)
	}
}

func defaultContainer(c *corev1.Container) {
	setDefault(&c.ImagePullPolicy, pullPolicy(c.Image))
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			defaultFieldRef(from.FieldRef)
			if from.FileKeyRef != nil {
				setDefaultPtr(&from.FileKeyRef.Optional, false)
			}
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(probe)
	}
	if c.Lifecycle == nil {
		return
	}
	for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if hook != nil {
			defaultHTTPGet(hook.HTTPGet)
		}
	}
}

func defaultProbe(probe *corev1.Probe) {
	if probe == nil {
		return
	}
	setDefault(&probe.TimeoutSeconds, 1)
	setDefault(&probe.PeriodSeconds, 10)
	setDefault(&probe.SuccessThreshold, 1)
	setDefault(&probe.FailureThreshold, 3)
	defaultHTTPGet(probe.HTTPGet)
	if probe.GRPC != nil {
		setDefaultPtr(&probe.GRPC.Service, "")
	}
}

func defaultHTTPGet(get *corev1.HTTPGetAction) {
	if get == nil {
		return
	}
	setDefault(&get.Path, "/")
	setDefault(&get.Scheme, corev1.URISchemeHTTP)
}

func defaultFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		setDefault(&ref.APIVersion, "v1")
	}
}

// defaultStatus makes podIP and podIPs agree; the older field wins.
func defaultStatus(status *corev1.PodStatus) {
	switch {
	case status.PodIP == "" && len(status.PodIPs) > 0:
		status.PodIP = status.PodIPs[0].IP
	case status.PodIP != "" && (len(status.PodIPs) == 0 || status.PodIPs[0].IP != status.PodIP):
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
	}
}

func defaultVolume(volume *corev1.Volume) {
	source := &volume.VolumeSource
	if *source == (corev1.VolumeSource{}) {
		source.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if source.Image != nil {
		setDefault(&source.Image.PullPolicy, pullPolicy(source.Image.Reference))
	}
	if source.HostPath != nil {
		setDefaultPtr(&source.HostPath.Type, corev1.HostPathUnset)
	}
	if source.Secret != nil {
		setDefaultPtr(&source.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	}
	if source.ConfigMap != nil {
		setDefaultPtr(&source.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	}
	if source.DownwardAPI != nil {
		setDefaultPtr(&source.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownwardFiles(source.DownwardAPI.Items)
	}
	if source.Projected != nil {
		defaultProjected(source.Projected)
	}
	if claim := source.Ephemeral; claim != nil && claim.VolumeClaimTemplate != nil {
		spec := &claim.VolumeClaimTemplate.Spec
		setDefaultPtr(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
		roundUp(spec.Resources.Limits)
		roundUp(spec.Resources.Requests)
	}
	defaultStorageDriver(source)
}

func defaultProjected(projected *corev1.ProjectedVolumeSource) {
	setDefaultPtr(&projected.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for _, source := range projected.Sources {
		if source.DownwardAPI != nil {
			defaultDownwardFiles(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			setDefaultPtr(&source.ServiceAccountToken.ExpirationSeconds, int64(time.Hour/time.Second))
		}
	}
}

func defaultDownwardFiles(files []corev1.DownwardAPIVolumeFile) {
	for _, file := range files {
		defaultFieldRef(file.FieldRef)
	}
}

// defaultStorageDriver fills in the defaults of drivers that once were part of Kubernetes.
func defaultStorageDriver(source *corev1.VolumeSource) {
	if iscsi := source.ISCSI; iscsi != nil {
		setDefault(&iscsi.ISCSIInterface, "default")
	}
	if rbd := source.RBD; rbd != nil {
		setDefault(&rbd.RBDPool, "rbd")
		setDefault(&rbd.RadosUser, "admin")
		setDefault(&rbd.Keyring, "/etc/ceph/keyring")
	}
	if disk := source.AzureDisk; disk != nil {
		setDefaultPtr(&disk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		setDefaultPtr(&disk.FSType, "ext4")
		setDefaultPtr(&disk.ReadOnly, false)
		setDefaultPtr(&disk.Kind, corev1.AzureSharedBlobDisk)
	}
	if scaleIO := source.ScaleIO; scaleIO != nil {
		setDefault(&scaleIO.StorageMode, "ThinProvisioned")
		setDefault(&scaleIO.FSType, "xfs")
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func setDefaultPtr[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
