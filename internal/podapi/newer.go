package podapi

import corev1 "k8s.io/api/core/v1"

// dropNewer removes the fields of k8s.io/api that Kubernetes 1.36 lacks: its decoder drops them as
// unknown. Empty this function when the package follows a newer release.
func dropNewer(pod *corev1.Pod) {
	pod.Spec.EvictionResponders = nil
	pod.Status.VolumeHealth = nil
	for i := range pod.Status.NodeAllocatableResourceClaimStatuses {
		status := &pod.Status.NodeAllocatableResourceClaimStatuses[i]
		status.Mapping, status.Overhead = nil, nil
	}
	for i := range pod.Spec.Volumes {
		dropNewerVolume(&pod.Spec.Volumes[i].VolumeSource)
	}
	for _, c := range containers(&pod.Spec) {
		for i := range c.VolumeMounts {
			c.VolumeMounts[i].BindMountOptions = nil
		}
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if probe == nil {
				continue
			}
			dropNewerHTTPGet(probe.HTTPGet)
			if probe.GRPC != nil {
				probe.GRPC.Mode = nil
			}
		}
		if c.Lifecycle == nil {
			continue
		}
		for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil {
				dropNewerHTTPGet(hook.HTTPGet)
			}
		}
	}
}

func dropNewerHTTPGet(get *corev1.HTTPGetAction) {
	if get != nil {
		get.Protocol = nil
	}
}

func dropNewerVolume(source *corev1.VolumeSource) {
	if source.EmptyDir != nil {
		source.EmptyDir.Mode = nil
	}
	if source.Secret != nil {
		source.Secret.DefaultUser = nil
		dropItemUsers(source.Secret.Items)
	}
	if source.ConfigMap != nil {
		source.ConfigMap.DefaultUser = nil
		dropItemUsers(source.ConfigMap.Items)
	}
	if source.DownwardAPI != nil {
		source.DownwardAPI.DefaultUser = nil
		dropFileUsers(source.DownwardAPI.Items)
	}
	if source.Projected == nil {
		return
	}
	source.Projected.DefaultUser = nil
	for _, projection := range source.Projected.Sources {
		switch {
		case projection.Secret != nil:
			dropItemUsers(projection.Secret.Items)
		case projection.ConfigMap != nil:
			dropItemUsers(projection.ConfigMap.Items)
		case projection.DownwardAPI != nil:
			dropFileUsers(projection.DownwardAPI.Items)
		case projection.ServiceAccountToken != nil:
			projection.ServiceAccountToken.User = nil
		case projection.ClusterTrustBundle != nil:
			projection.ClusterTrustBundle.User = nil
		case projection.PodCertificate != nil:
			projection.PodCertificate.User = nil
		}
	}
}

func dropItemUsers(items []corev1.KeyToPath) {
	for i := range items {
		items[i].User = nil
	}
}

func dropFileUsers(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		files[i].User = nil
	}
}
