package podapi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// APIReference returns the kind of an API object that a valid pod needs to run, or "" if it needs
// none. A static pod must need none, since its node has to start it before there is an API.
func APIReference(pod *corev1.Pod) string {
	spec := &pod.Spec
	switch {
	case spec.ServiceAccountName != "":
		return "service account"
	case slices.ContainsFunc(spec.ImagePullSecrets, func(ref corev1.LocalObjectReference) bool { return ref.Name != "" }):
		return "secret"
	case len(spec.ResourceClaims) > 0:
		return "resource claim"
	}
	for _, c := range containers(spec) {
		if kind := containerReference(c); kind != "" {
			return kind
		}
	}
	for i := range spec.Volumes {
		if kind := volumeReference(&spec.Volumes[i].VolumeSource); kind != "" {
			return kind
		}
	}
	return ""
}

func containerReference(c *corev1.Container) string {
	for _, from := range c.EnvFrom {
		switch {
		case from.SecretRef != nil:
			return "secret"
		case from.ConfigMapRef != nil:
			return "config map"
		}
	}
	for _, env := range c.Env {
		switch {
		case env.ValueFrom == nil:
		case env.ValueFrom.SecretKeyRef != nil:
			return "secret"
		case env.ValueFrom.ConfigMapKeyRef != nil:
			return "config map"
		}
	}
	return ""
}

func volumeReference(source *corev1.VolumeSource) string {
	switch {
	case source.Secret != nil, source.AzureFile != nil, driverSecret(source):
		return "secret"
	case source.ConfigMap != nil:
		return "config map"
	case source.CSI != nil:
		return "CSI driver"
	case source.Glusterfs != nil:
		return "endpoints of glusterfs"
	case source.PersistentVolumeClaim != nil, source.Ephemeral != nil:
		return "persistent volume claim"
	case source.Projected != nil:
		for i := range source.Projected.Sources {
			if kind := projectionReference(&source.Projected.Sources[i]); kind != "" {
				return kind
			}
		}
	}
	return ""
}

// driverSecret reports whether a storage driver logs in with a secret.
func driverSecret(source *corev1.VolumeSource) bool {
	var ref *corev1.LocalObjectReference
	switch {
	case source.CephFS != nil:
		ref = source.CephFS.SecretRef
	case source.Cinder != nil:
		ref = source.Cinder.SecretRef
	case source.FlexVolume != nil:
		ref = source.FlexVolume.SecretRef
	case source.RBD != nil:
		ref = source.RBD.SecretRef
	case source.ScaleIO != nil:
		ref = source.ScaleIO.SecretRef
	case source.ISCSI != nil:
		ref = source.ISCSI.SecretRef
	case source.StorageOS != nil:
		ref = source.StorageOS.SecretRef
	}
	return ref != nil && ref.Name != ""
}

// projectionReference also refuses a source that this release does not know, an empty source
// included.
func projectionReference(source *corev1.VolumeProjection) string {
	switch {
	case source.Secret != nil:
		return "secret"
	case source.ConfigMap != nil:
		return "config map"
	case source.ServiceAccountToken != nil:
		return "service account"
	case source.ClusterTrustBundle != nil:
		return "cluster trust bundle"
	case source.PodCertificate != nil:
		return "pod certificate"
	case source.DownwardAPI != nil:
		return ""
	default:
		return "projected source of an unknown kind"
	}
}
