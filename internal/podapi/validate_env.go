package podapi

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The fields of a pod that its containers can read, as variables and as files.
var (
	envFields = []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
	fileFields = []string{
		"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid",
	}
	// knownFields are all fields that the API can name. Any other field has another fault.
	knownFields = append([]string{
		"metadata.annotations", "metadata.labels", "spec.host", "spec.restartPolicy", "spec.schedulerName", "status.phase",
	}, envFields...)
	amountFields = []string{
		"limits.cpu", "limits.memory", "limits.ephemeral-storage",
		"requests.cpu", "requests.memory", "requests.ephemeral-storage",
	}
	cpuDivisors  = []string{"1m", "1"}
	byteDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
)

func (v *validator) env(vars []corev1.EnvVar, at *field.Path) {
	for i, env := range vars {
		at := at.Index(i)
		if v.notEmpty(at.Child("name"), env.Name) {
			v.messages(at.Child("name"), utilvalidation.IsRelaxedEnvVarName(env.Name))
		}
		if env.ValueFrom != nil {
			v.envSource(env.ValueFrom, env.Value, at.Child("valueFrom"))
		}
	}
}

func (v *validator) envSource(from *corev1.EnvVarSource, value string, at *field.Path) {
	sources := 0
	if from.FieldRef != nil {
		sources++
		v.fieldRef(from.FieldRef, envFields, at.Child("fieldRef"))
	}
	if from.ResourceFieldRef != nil {
		sources++
		v.amountRef(from.ResourceFieldRef, at.Child("resourceFieldRef"))
	}
	if ref := from.ConfigMapKeyRef; ref != nil {
		sources++
		v.keyRef(ref.Name, ref.Key, at.Child("configMapKeyRef"))
	}
	if ref := from.SecretKeyRef; ref != nil {
		sources++
		v.keyRef(ref.Name, ref.Key, at.Child("secretKeyRef"))
	}
	if from.FileKeyRef != nil {
		sources++
		v.fileKeyRef(from.FileKeyRef, at.Child("fileKeyRef"))
	}
	switch {
	case sources != 1:
		v.invalid(at, "needs exactly one source")
	case value != "":
		v.invalid(at, "excludes a value")
	}
}

// keyRef checks a key of a ConfigMap or of a Secret.
func (v *validator) keyRef(name, key string, at *field.Path) {
	v.messages(at.Child("name"), validation.NameIsDNSSubdomain(name, false))
	if v.notEmpty(at.Child("key"), key) {
		v.messages(at.Child("key"), utilvalidation.IsConfigMapKey(key))
	}
}

func (v *validator) fileKeyRef(ref *corev1.FileKeySelector, at *field.Path) {
	if v.notEmpty(at.Child("key"), ref.Key) {
		v.messages(at.Child("key"), utilvalidation.IsRelaxedEnvVarName(ref.Key))
	}
	if v.notEmpty(at.Child("volumeName"), ref.VolumeName) {
		v.messages(at.Child("volumeName"), utilvalidation.IsDNS1123Label(ref.VolumeName))
	}
	if v.notEmpty(at.Child("path"), ref.Path) {
		v.noBacksteps(ref.Path, at.Child("path"))
	}
}

// fileKeyVolumes requires that files with variables lie in volumes that containers can write to.
func (v *validator) fileKeyVolumes(c *corev1.Container, at *field.Path) {
	for i, env := range c.Env {
		if env.ValueFrom == nil || env.ValueFrom.FileKeyRef == nil {
			continue
		}
		at := at.Child("env").Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
		var found *corev1.Volume
		for j := range v.spec.Volumes {
			if v.spec.Volumes[j].Name == env.ValueFrom.FileKeyRef.VolumeName {
				found = &v.spec.Volumes[j]
			}
		}
		switch {
		case found == nil:
			v.notFound(at, "")
		case found.EmptyDir == nil:
			v.invalid(at, "must be an emptyDir")
		}
	}
}

// fieldRef checks a reference to a field of the pod, or to one key of a map.
func (v *validator) fieldRef(ref *corev1.ObjectFieldSelector, allowed []string, at *field.Path) {
	if !v.notEmpty(at.Child("apiVersion"), ref.APIVersion) || !v.notEmpty(at.Child("fieldPath"), ref.FieldPath) {
		return
	}
	path, key, subscripted := splitSubscript(ref.FieldPath)
	switch {
	case ref.APIVersion != "v1":
		v.invalid(at.Child("fieldPath"), "is known in version v1 only")
	case subscripted && path == "metadata.annotations":
		v.messages(at, utilvalidation.IsQualifiedName(strings.ToLower(key)))
	case subscripted && path == "metadata.labels":
		v.messages(at, utilvalidation.IsQualifiedName(key))
	case subscripted, !slices.Contains(knownFields, path):
		v.invalid(at.Child("fieldPath"), "is no field that can be referred to")
	case path == "spec.host":
		oneOf(&v.faults, at.Child("fieldPath"), "spec.nodeName", allowed...)
	default:
		oneOf(&v.faults, at.Child("fieldPath"), path, allowed...)
	}
}

// splitSubscript splits path['key'].
func splitSubscript(fieldPath string) (path, key string, ok bool) {
	inner, closed := strings.CutSuffix(fieldPath, "']")
	path, key, opened := strings.Cut(inner, "['")
	if !closed || !opened || path == "" {
		return fieldPath, "", false
	}
	return path, key, true
}

// amountRef checks a reference to a request or a limit of a container.
func (v *validator) amountRef(ref *corev1.ResourceFieldSelector, at *field.Path) {
	if v.notEmpty(at.Child("resource"), ref.Resource) && !isHugePagesField(ref.Resource) {
		oneOf(&v.faults, at.Child("resource"), ref.Resource, amountFields...)
	}
	v.divisor(ref, at.Child("divisor"))
}

func (v *validator) divisor(ref *corev1.ResourceFieldSelector, at *field.Path) {
	divisors := byteDivisors
	switch {
	case ref.Resource == "limits.cpu", ref.Resource == "requests.cpu":
		divisors = cpuDivisors
	case !isHugePagesField(ref.Resource) && !slices.Contains(amountFields, ref.Resource):
		return
	}
	if !ref.Divisor.IsZero() && !slices.Contains(divisors, ref.Divisor.String()) {
		v.invalid(at, "must be 1 or a unit of the resource")
	}
}

func isHugePagesField(name string) bool {
	return strings.HasPrefix(name, "limits.hugepages-") || strings.HasPrefix(name, "requests.hugepages-")
}

func (v *validator) envFrom(sources []corev1.EnvFromSource, at *field.Path) {
	for i, source := range sources {
		if source.Prefix != "" {
			v.messages(at.Index(i).Child("prefix"), utilvalidation.IsRelaxedEnvVarName(source.Prefix))
		}
		if ref := source.ConfigMapRef; ref != nil {
			v.envObject(ref.Name, at.Index(i).Child("configMapRef", "name"))
		}
		if ref := source.SecretRef; ref != nil {
			v.envObject(ref.Name, at.Index(i).Child("secretRef", "name"))
		}
		if (source.ConfigMapRef == nil) == (source.SecretRef == nil) {
			v.invalid(at, "needs either configMapRef or secretRef")
		}
	}
}

func (v *validator) envObject(name string, at *field.Path) {
	if v.notEmpty(at, name) {
		v.messages(at, validation.NameIsDNSSubdomain(name, true))
	}
}

func (v *validator) downwardVolume(volume *corev1.DownwardAPIVolumeSource, at *field.Path) {
	v.fileMode(volume.DefaultMode, at.Child("defaultMode"))
	v.newerDefaultUser(at)
	for i, file := range volume.Items {
		v.downwardFile(file, at, at.Child("items").Index(i))
	}
}

// downwardFile checks one file with the pod's own data, at item. The server's paths omit its index.
func (v *validator) downwardFile(file corev1.DownwardAPIVolumeFile, at, item *field.Path) {
	v.newerUser(item, at)
	v.notEmpty(at.Child("path"), file.Path)
	v.fileName(file.Path, at.Child("path"))
	v.fileMode(file.Mode, at.Child("mode"))
	switch {
	case file.FieldRef != nil:
		v.fieldRef(file.FieldRef, fileFields, at.Child("fieldRef"))
		if file.ResourceFieldRef != nil {
			v.invalid(at, "has both fieldRef and resourceFieldRef")
		}
	case file.ResourceFieldRef == nil:
		v.required(at, "needs fieldRef or resourceFieldRef")
	case file.ResourceFieldRef.ContainerName == "":
		v.required(at.Child("resourceFieldRef", "containerName"), "")
		v.divisor(file.ResourceFieldRef, at.Child("resourceFieldRef", "divisor"))
	default:
		v.amountRef(file.ResourceFieldRef, at.Child("resourceFieldRef"))
	}
}
