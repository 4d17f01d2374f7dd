package refs

import (
	corev1 "k8s.io/api/core/v1"
)

// SecretsOf returns the names of all Secrets that a pod mentions: by its volumes, projected
// volumes, environment, image pull secrets, and the secrets that its volumes' drivers need. It is
// the list by which the Node authorizer permits a kubelet to read them, except for those of its
// persistent volumes.
func SecretsOf(pod *corev1.Pod) Names {
	var found mentions
	for i := range pod.Spec.ImagePullSecrets {
		found.local(&pod.Spec.ImagePullSecrets[i])
	}
	eachContainer(pod, func(env []corev1.EnvVar, from []corev1.EnvFromSource) {
		for i := range from {
			if from[i].SecretRef != nil {
				found.add(from[i].SecretRef.Name)
			}
		}
		for i := range env {
			if source := env[i].ValueFrom; source != nil && source.SecretKeyRef != nil {
				found.add(source.SecretKeyRef.Name)
			}
		}
	})
	for i := range pod.Spec.Volumes {
		found.secretsOfVolume(&pod.Spec.Volumes[i].VolumeSource)
	}
	return In(pod.Namespace, found...)
}

// ConfigMapsOf returns the names of all ConfigMaps that a pod mentions: by its volumes, projected
// volumes and environment.
func ConfigMapsOf(pod *corev1.Pod) Names {
	var found mentions
	eachContainer(pod, func(env []corev1.EnvVar, from []corev1.EnvFromSource) {
		for i := range from {
			if from[i].ConfigMapRef != nil {
				found.add(from[i].ConfigMapRef.Name)
			}
		}
		for i := range env {
			if source := env[i].ValueFrom; source != nil && source.ConfigMapKeyRef != nil {
				found.add(source.ConfigMapKeyRef.Name)
			}
		}
	})
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i].VolumeSource
		if volume.ConfigMap != nil {
			found.add(volume.ConfigMap.Name)
		}
		if volume.Projected != nil {
			for j := range volume.Projected.Sources {
				if source := volume.Projected.Sources[j].ConfigMap; source != nil {
					found.add(source.Name)
				}
			}
		}
	}
	return In(pod.Namespace, found...)
}

// mentions are names, in the order of the pod. Doubles and empty names do no harm.
type mentions []string

func (m *mentions) add(name string) { *m = append(*m, name) }

func (m *mentions) local(ref *corev1.LocalObjectReference) {
	if ref != nil {
		m.add(ref.Name)
	}
}

func (m *mentions) secretsOfVolume(v *corev1.VolumeSource) {
	switch {
	case v.Secret != nil:
		m.add(v.Secret.SecretName)
	case v.Projected != nil:
		for i := range v.Projected.Sources {
			if source := v.Projected.Sources[i].Secret; source != nil {
				m.add(source.Name)
			}
		}
	case v.CSI != nil:
		m.local(v.CSI.NodePublishSecretRef)
	case v.AzureFile != nil:
		m.add(v.AzureFile.SecretName)
	case v.CephFS != nil:
		m.local(v.CephFS.SecretRef)
	case v.Cinder != nil:
		m.local(v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		m.local(v.FlexVolume.SecretRef)
	case v.ISCSI != nil:
		m.local(v.ISCSI.SecretRef)
	case v.RBD != nil:
		m.local(v.RBD.SecretRef)
	case v.ScaleIO != nil:
		m.local(v.ScaleIO.SecretRef)
	case v.StorageOS != nil:
		m.local(v.StorageOS.SecretRef)
	}
}

func eachContainer(pod *corev1.Pod, do func([]corev1.EnvVar, []corev1.EnvFromSource)) {
	for i := range pod.Spec.InitContainers {
		do(pod.Spec.InitContainers[i].Env, pod.Spec.InitContainers[i].EnvFrom)
	}
	for i := range pod.Spec.Containers {
		do(pod.Spec.Containers[i].Env, pod.Spec.Containers[i].EnvFrom)
	}
	for i := range pod.Spec.EphemeralContainers {
		do(pod.Spec.EphemeralContainers[i].Env, pod.Spec.EphemeralContainers[i].EnvFrom)
	}
}
