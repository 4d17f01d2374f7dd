package podapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	seccompPodKey         = "seccomp.security.alpha.kubernetes.io/pod"
	seccompContainerKey   = "container.seccomp.security.alpha.kubernetes.io/"
	appArmorContainerKey  = "container.apparmor.security.beta.kubernetes.io/"
	tolerationsKey        = "scheduler.alpha.kubernetes.io/tolerations"
	localhostProfile      = "localhost/"
	runtimeDefaultProfile = "runtime/default"
	dockerDefaultProfile  = "docker/default"
	unconfinedProfile     = "unconfined"
)

// standardFinalizers need no domain.
var standardFinalizers = []string{
	string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents,
}

func (v *validator) metadata() {
	meta := v.pod.ObjectMeta
	meta.OwnerReferences = nil // owners() has the paths of the release, not of the build
	v.adopt(validation.ValidateObjectMeta(&meta, true, validation.NameIsDNSSubdomain, metaPath))
	v.owners()
	for i, finalizer := range v.pod.Finalizers {
		if !strings.Contains(finalizer, "/") && !slices.Contains(standardFinalizers, finalizer) {
			v.invalid(metaPath.Child("finalizers").Index(i), "needs a domain, as it is no standard finalizer")
		}
	}
	v.annotations()
}

func (v *validator) owners() {
	all := metaPath.Child("ownerReferences")
	controllers := 0
	for i, owner := range v.pod.OwnerReferences {
		at := all
		if v.release >= R137 {
			at = all.Index(i)
		}
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		if kind.Version == "" {
			v.invalid(at.Child("apiVersion"), "needs a version")
		}
		for name, value := range map[string]string{"kind": kind.Kind, "name": owner.Name, "uid": string(owner.UID)} {
			if value == "" {
				v.invalid(at.Child(name), "must not be empty")
			}
		}
		if kind == corev1.SchemeGroupVersion.WithKind("Event") {
			v.invalid(at, "an Event cannot own anything")
		}
		if owner.Controller != nil && *owner.Controller {
			controllers++
		}
		if controllers > 1 {
			v.invalid(all, "has more than one controller")
			controllers = 1
		}
	}
}

// annotations checks the annotations that fields have replaced: they must agree with those fields.
func (v *validator) annotations() {
	at := metaPath.Child("annotations")
	for key, value := range v.pod.Annotations {
		switch {
		case key == corev1.MirrorPodAnnotationKey && v.spec.NodeName == "":
			v.invalid(at.Key(key), "needs a node")
		case key == corev1.PodDeletionCost && !isDeletionCost(value):
			v.invalid(at.Key(key), "must be a 32 bit integer")
		case key == tolerationsKey && value != "":
			v.annotatedTolerations(value, at)
		case key == seccompPodKey, strings.HasPrefix(key, seccompContainerKey):
			v.seccompAnnotation(value, at.Child(key))
		case strings.HasPrefix(key, appArmorContainerKey):
			v.appArmorAnnotation(strings.TrimPrefix(key, appArmorContainerKey), value, at.Key(key))
		}
	}
	if sc := v.spec.SecurityContext; sc != nil {
		v.seccompAgrees(seccompPodKey, sc.SeccompProfile, specPath.Child("securityContext"))
	}
	for at, c := range containers(v.spec) {
		if c.SecurityContext != nil {
			v.seccompAgrees(seccompContainerKey+c.Name, c.SecurityContext.SeccompProfile, at.Child("securityContext"))
		}
		v.appArmorAgrees(c, at.Child("securityContext"))
	}
}

// isDeletionCost accepts an integer in canonical form: no plus sign, no leading zeros.
func isDeletionCost(value string) bool {
	if value == "" || value[0] != '-' && (value[0] < '1' || value[0] > '9') && value != "0" {
		return false
	}
	_, err := strconv.ParseInt(value, 10, 32)
	return err == nil
}

func (v *validator) annotatedTolerations(value string, at *field.Path) {
	var tolerations []corev1.Toleration
	if err := json.Unmarshal([]byte(value), &tolerations); err != nil {
		v.invalid(at, "holds tolerations that cannot be parsed")
		return
	}
	v.tolerations(tolerations, at.Child(tolerationsKey))
}

func (v *validator) seccompAnnotation(profile string, at *field.Path) {
	path, local := strings.CutPrefix(profile, localhostProfile)
	switch {
	case local:
		v.relativePath(path, at)
	case profile != runtimeDefaultProfile && profile != dockerDefaultProfile && profile != unconfinedProfile:
		v.invalid(at, "must be a seccomp profile")
	}
}

func (v *validator) appArmorAnnotation(container, profile string, at *field.Path) {
	known := false
	for _, c := range containers(v.spec) {
		known = known || c.Name == container
	}
	if !known {
		v.invalid(at, "names no container of this pod")
	}
	if profile != "" && profile != runtimeDefaultProfile && profile != unconfinedProfile &&
		!strings.HasPrefix(profile, localhostProfile) {
		v.invalid(at, "must be an AppArmor profile")
	}
}

func (v *validator) seccompAgrees(key string, profile *corev1.SeccompProfile, at *field.Path) {
	if annotation, ok := v.pod.Annotations[key]; ok && profile != nil {
		if annotation == dockerDefaultProfile {
			annotation = runtimeDefaultProfile
		}
		v.profileAgrees(annotation, string(profile.Type), profile.LocalhostProfile, at.Child("seccompProfile"))
	}
}

// appArmorAgrees is seccompAgrees for AppArmor, for which a container without a profile has the
// pod's.
func (v *validator) appArmorAgrees(c *corev1.Container, at *field.Path) {
	annotation, ok := v.pod.Annotations[appArmorContainerKey+c.Name]
	if !ok || v.isWindows() {
		return
	}
	var profile *corev1.AppArmorProfile
	if v.spec.SecurityContext != nil {
		profile = v.spec.SecurityContext.AppArmorProfile
	}
	if c.SecurityContext != nil && c.SecurityContext.AppArmorProfile != nil {
		profile = c.SecurityContext.AppArmorProfile
	}
	if profile != nil {
		v.profileAgrees(annotation, string(profile.Type), profile.LocalhostProfile, at.Child("appArmorProfile"))
	}
}

// profileAgrees requires that a field equals the annotation that it has replaced. Both kinds of
// profiles have the same three types.
func (v *validator) profileAgrees(annotation, kind string, local *string, at *field.Path) {
	path, isLocal := strings.CutPrefix(annotation, localhostProfile)
	agree := true
	switch kind {
	case string(corev1.SeccompProfileTypeUnconfined):
		agree = annotation == unconfinedProfile
	case string(corev1.SeccompProfileTypeRuntimeDefault):
		agree = annotation == runtimeDefaultProfile
	case string(corev1.SeccompProfileTypeLocalhost):
		agree = isLocal
		if isLocal && (local == nil || *local != path) {
			v.forbidden(at.Child("localhostProfile"), "differs from the annotation")
		}
	}
	if !agree {
		v.forbidden(at.Child("type"), "differs from the annotation")
	}
}
