package podapi

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ephemeralVolume checks the template of a pod's claim. A static pod may not have one; that fault
// comes after the template's own.
func (v *validator) ephemeralVolume(volume *corev1.EphemeralVolumeSource, at *field.Path) {
	at = at.Child("volumeClaimTemplate")
	template := volume.VolumeClaimTemplate
	if template == nil {
		v.required(at, "")
		return
	}
	v.claimMetadata(&template.ObjectMeta, at.Child("metadata"))
	v.claimSpec(&template.Spec, at.Child("spec"))
}

func (v *validator) claimMetadata(meta *metav1.ObjectMeta, at *field.Path) {
	v.adopt(validation.ValidateAnnotations(meta.Annotations, at.Child("annotations")))
	v.adopt(metav1validation.ValidateLabels(meta.Labels, at.Child("labels")))
	v.onlyFields(*meta, at, "has no place in a template", "Annotations", "Labels")
}

// onlyFields faults each set field of a struct outside allowed, by its Go name in lower camel case.
func (v *validator) onlyFields(object any, at *field.Path, why string, allowed ...string) {
	may := sets.New(allowed...)
	value := reflect.ValueOf(object)
	for i := range value.NumField() {
		name := value.Type().Field(i).Name
		if !may.Has(name) && !value.Field(i).IsZero() {
			v.forbidden(at.Child(strings.ToLower(name[:1])+name[1:]), why)
		}
	}
}

func (v *validator) claimSpec(spec *corev1.PersistentVolumeClaimSpec, at *field.Path) {
	v.accessModes(spec.AccessModes, at.Child("accessModes"))
	if spec.Selector != nil {
		v.adopt(metav1validation.ValidateLabelSelector(spec.Selector,
			metav1validation.LabelSelectorValidationOptions{}, at.Child("selector")))
	}
	storage, ok := spec.Resources.Requests[corev1.ResourceStorage]
	switch at := at.Child("resources").Key(string(corev1.ResourceStorage)); {
	case !ok:
		v.required(at, "")
	case storage.Sign() <= 0:
		v.invalid(at, "must be greater than zero")
	}
	if class := spec.StorageClassName; class != nil && *class != "" {
		v.messages(at.Child("storageClassName"), validation.NameIsDNSSubdomain(*class, false))
	}
	if class := spec.VolumeAttributesClassName; class != nil && *class != "" {
		v.messages(at.Child("volumeAttributesClassName"), validation.NameIsDNSSubdomain(*class, false))
	}
	if spec.VolumeMode != nil {
		oneOf(&v.faults, at.Child("volumeMode"), *spec.VolumeMode,
			corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem)
	}
	v.dataSources(spec, at)
}

func (v *validator) accessModes(modes []corev1.PersistentVolumeAccessMode, at *field.Path) {
	if len(modes) == 0 {
		v.required(at, "")
	}
	alone, shared := false, false
	for _, mode := range modes {
		before := v.count
		oneOf(&v.faults, at, mode, corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod)
		alone = alone || mode == corev1.ReadWriteOncePod
		shared = shared || mode != corev1.ReadWriteOncePod && v.count == before
	}
	if alone && shared {
		v.forbidden(at, "ReadWriteOncePod excludes other access modes")
	}
}

func (v *validator) dataSources(spec *corev1.PersistentVolumeClaimSpec, at *field.Path) {
	source, ref := spec.DataSource, spec.DataSourceRef
	if source != nil {
		v.dataSource(corev1.TypedObjectReference{APIGroup: source.APIGroup, Kind: source.Kind, Name: source.Name},
			at.Child("dataSource"))
	}
	if ref == nil {
		return
	}
	v.dataSource(*ref, at.Child("dataSourceRef"))
	elsewhere := ref.Namespace != nil && *ref.Namespace != ""
	if elsewhere {
		v.messages(at.Child("dataSourceRef", "namespace"), validation.ValidateNamespaceName(*ref.Namespace, false))
	}
	same := source != nil && equality.Semantic.DeepEqual(source.APIGroup, ref.APIGroup) &&
		source.Kind == ref.Kind && source.Name == ref.Name
	if source != nil && (elsewhere || !same) {
		v.invalid(at, "dataSource must equal dataSourceRef, and must be absent if dataSourceRef has a namespace")
	}
}

func (v *validator) dataSource(ref corev1.TypedObjectReference, at *field.Path) {
	v.notEmpty(at.Child("name"), ref.Name)
	v.notEmpty(at.Child("kind"), ref.Kind)
	if ref.APIGroup != nil && *ref.APIGroup != "" {
		v.messages(at.Child("apiGroup"), utilvalidation.IsDNS1123Subdomain(*ref.APIGroup))
	} else if ref.Kind != "PersistentVolumeClaim" {
		v.invalid(at, "must be a PersistentVolumeClaim if apiGroup is empty")
	}
}
