package podapi

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	metaPath = field.NewPath("metadata")
	specPath = field.NewPath("spec")
)

// containers yields all containers of a pod with their paths: init containers, containers,
// ephemeral containers.
func containers(spec *corev1.PodSpec) iter.Seq2[*field.Path, *corev1.Container] {
	return func(yield func(*field.Path, *corev1.Container) bool) {
		for i := range spec.InitContainers {
			if !yield(specPath.Child("initContainers").Index(i), &spec.InitContainers[i]) {
				return
			}
		}
		for i := range spec.Containers {
			if !yield(specPath.Child("containers").Index(i), &spec.Containers[i]) {
				return
			}
		}
		for i := range spec.EphemeralContainers {
			common := (*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon)
			if !yield(specPath.Child("ephemeralContainers").Index(i), common) {
				return
			}
		}
	}
}

// isSidecar reports whether an init container keeps running beside the other containers.
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}
