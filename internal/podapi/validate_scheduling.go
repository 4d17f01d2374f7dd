package podapi

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const maxWeight = 100

// scheduling checks where and when a pod may run.
func (v *validator) scheduling() {
	if policy := v.spec.PreemptionPolicy; policy != nil {
		setOneOf(&v.faults, specPath.Child("preemptionPolicy"), *policy, corev1.PreemptLowerPriority, corev1.PreemptNever)
	}
	v.tolerations(v.spec.Tolerations, specPath.Child("tolerations"))
	v.gates()
	v.spread()
	if group, ok := podGroup(v.spec); ok {
		at := specPath.Child("schedulingGroup", "podGroupName")
		if group == nil {
			v.invalid(at, "a scheduling group needs one")
		} else {
			v.messages(at, validation.NameIsDNSSubdomain(*group, false))
		}
	}
	affinity, at := v.spec.Affinity, specPath.Child("affinity")
	if affinity == nil {
		return
	}
	if affinity.NodeAffinity != nil {
		v.nodeAffinity(affinity.NodeAffinity, at.Child("nodeAffinity"))
	}
	if pods := affinity.PodAffinity; pods != nil {
		v.podAffinity(pods.RequiredDuringSchedulingIgnoredDuringExecution,
			pods.PreferredDuringSchedulingIgnoredDuringExecution, at.Child("podAffinity"))
	}
	if pods := affinity.PodAntiAffinity; pods != nil {
		v.podAffinity(pods.RequiredDuringSchedulingIgnoredDuringExecution,
			pods.PreferredDuringSchedulingIgnoredDuringExecution, at.Child("podAntiAffinity"))
	}
}

// podGroup is the name of the scheduling group, and whether there is one. It is read by its field's
// name, for the k8s.io/api of 1.35 does not have the field.
func podGroup(spec *corev1.PodSpec) (name *string, ok bool) {
	group := reflect.ValueOf(spec).Elem().FieldByName("SchedulingGroup")
	if !group.IsValid() || group.IsNil() {
		return nil, false
	}
	return group.Elem().FieldByName("PodGroupName").Interface().(*string), true
}

// gates hold a pod back from the scheduler, so a pod with a node cannot have any.
func (v *validator) gates() {
	seen := sets.New[string]()
	for i, gate := range v.spec.SchedulingGates {
		at := specPath.Child("schedulingGates").Index(i)
		v.messages(at, utilvalidation.IsQualifiedName(gate.Name))
		if seen.Has(gate.Name) {
			v.duplicate(at, "")
		}
		seen.Insert(gate.Name)
	}
	if v.spec.NodeName != "" && len(v.spec.SchedulingGates) > 0 {
		v.forbidden(specPath.Child("nodeName"), "excludes schedulingGates")
	}
}

func (v *validator) tolerations(tolerations []corev1.Toleration, all *field.Path) {
	for i, t := range tolerations {
		at := all.Index(i)
		if t.Key != "" {
			v.adopt(metav1validation.ValidateLabelName(t.Key, at.Child("key")))
		} else if t.Operator != corev1.TolerationOpExists {
			v.invalid(at.Child("operator"), "must be Exists where no key is named")
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "":
			v.messages(at.Child("operator"), utilvalidation.IsValidLabelValue(t.Value))
		case corev1.TolerationOpExists:
			if t.Value != "" {
				v.invalid(at.Child("operator"), "Exists takes no value")
			}
		default: // Lt and Gt need a gate that is off
			oneOf(&v.faults, at.Child("operator"), t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists)
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			v.invalid(at.Child("effect"), "must be NoExecute for tolerationSeconds")
		}
		if t.Effect != "" {
			oneOf(&v.faults, at.Child("effect"), t.Effect,
				corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
		}
	}
}

// spread checks the topology constraints: at most one for each topology key and whenUnsatisfiable.
func (v *validator) spread() {
	constraints := v.spec.TopologySpreadConstraints
	for i, c := range constraints {
		at := specPath.Child("topologySpreadConstraints").Index(i)
		v.positive(c.MaxSkew, at.Child("maxSkew"))
		v.notEmpty(at.Child("topologyKey"), c.TopologyKey)
		oneOf(&v.faults, at.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)
		if slices.ContainsFunc(constraints[i+1:], func(other corev1.TopologySpreadConstraint) bool {
			return other.TopologyKey == c.TopologyKey && other.WhenUnsatisfiable == c.WhenUnsatisfiable
		}) {
			v.duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), "")
		}
		if c.MinDomains != nil {
			v.positive(*c.MinDomains, at.Child("minDomains"))
			if c.WhenUnsatisfiable != corev1.DoNotSchedule {
				v.invalid(at.Child("minDomains"), "needs whenUnsatisfiable DoNotSchedule")
			}
		}
		for name, policy := range map[string]*corev1.NodeInclusionPolicy{
			"nodeAffinityPolicy": c.NodeAffinityPolicy, "nodeTaintsPolicy": c.NodeTaintsPolicy,
		} {
			if policy != nil {
				oneOf(&v.faults, at.Child(name), *policy, corev1.NodeInclusionPolicyIgnore, corev1.NodeInclusionPolicyHonor)
			}
		}
		v.labelKeys(c.MatchLabelKeys, nil, c.LabelSelector, at)
		v.labelSelector(c.LabelSelector, at.Child("labelSelector"))
	}
}

func (v *validator) positive(n int32, at *field.Path) {
	if n <= 0 {
		v.invalid(at, "must be greater than zero")
	}
}

func (v *validator) labelSelector(selector *metav1.LabelSelector, at *field.Path) {
	v.adopt(metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, at))
}

// labelKeys checks the keys that add the pod's own labels to a selector.
func (v *validator) labelKeys(match, mismatch []string, selector *metav1.LabelSelector, at *field.Path) {
	for _, side := range []struct {
		name string
		keys []string
	}{{"matchLabelKeys", match}, {"mismatchLabelKeys", mismatch}} {
		if len(side.keys) > 0 && selector == nil {
			v.forbidden(at.Child(side.name), "needs labelSelector")
			continue
		}
		for i, key := range side.keys {
			v.adopt(metav1validation.ValidateLabelName(key, at.Child(side.name).Index(i)))
		}
	}
	if selector != nil {
		v.selectedTwice(match, selector, at)
	}
	for i, key := range match {
		if slices.Contains(mismatch, key) {
			v.invalid(at.Child("matchLabelKeys").Index(i), "is in mismatchLabelKeys too")
		}
	}
}

// selectedTwice faults a key that the selector has twice. The server takes the second for the one
// that matchLabelKeys has added, so the first must be the user's.
func (v *validator) selectedTwice(match []string, selector *metav1.LabelSelector, at *field.Path) {
	place := map[string]int{}
	for i, key := range match {
		place[key] = i
	}
	seen := sets.KeySet(selector.MatchLabels)
	for _, expression := range selector.MatchExpressions {
		if i, ok := place[expression.Key]; ok && seen.Has(expression.Key) {
			v.invalid(at.Index(i), "is both in matchLabelKeys and in labelSelector")
		}
		seen.Insert(expression.Key)
	}
}

func (v *validator) nodeAffinity(affinity *corev1.NodeAffinity, at *field.Path) {
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		at := at.Child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
		if len(required.NodeSelectorTerms) == 0 {
			v.required(at, "")
		}
		for i, term := range required.NodeSelectorTerms {
			v.nodeTerm(term, at.Index(i))
			for j, expression := range term.MatchExpressions {
				v.labelValues(expression.Values, at.Index(i).Child("matchExpressions").Index(j).Child("values"))
			}
		}
	}
	for i, term := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		at := at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		v.weight(term.Weight, at.Child("weight"))
		v.nodeTerm(term.Preference, at.Child("preference"))
	}
}

func (v *validator) weight(weight int32, at *field.Path) {
	if weight <= 0 || weight > maxWeight {
		v.invalid(at, fmt.Sprintf("must be between 1 and %d", maxWeight))
	}
}

func (v *validator) labelValues(values []string, at *field.Path) {
	for i, value := range values {
		v.messages(at.Index(i), utilvalidation.IsValidLabelValue(value))
	}
}

func (v *validator) nodeTerm(term corev1.NodeSelectorTerm, at *field.Path) {
	for i, expression := range term.MatchExpressions {
		v.nodeExpression(expression, at.Child("matchExpressions").Index(i))
	}
	for i, expression := range term.MatchFields {
		v.nodeField(expression, at.Child("matchFields").Index(i))
	}
}

func (v *validator) nodeExpression(expression corev1.NodeSelectorRequirement, at *field.Path) {
	values := len(expression.Values)
	switch expression.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if values == 0 {
			v.required(at.Child("values"), "In and NotIn need values")
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if values > 0 {
			v.forbidden(at.Child("values"), "Exists and DoesNotExist take no values")
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if values != 1 {
			v.required(at.Child("values"), "Gt and Lt need one value")
		}
	default:
		v.invalid(at.Child("operator"), "is no operator of selectors")
	}
	v.adopt(metav1validation.ValidateLabelName(expression.Key, at.Child("key")))
}

// nodeField checks a node selector by field; the only field is the name.
func (v *validator) nodeField(expression corev1.NodeSelectorRequirement, at *field.Path) {
	switch expression.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(expression.Values) != 1 {
			v.required(at.Child("values"), "In and NotIn need one value here")
		}
	default:
		v.invalid(at.Child("operator"), "must be In or NotIn")
	}
	if expression.Key != metav1.ObjectNameField {
		v.invalid(at.Child("key"), "must be the name")
		return
	}
	for i, value := range expression.Values {
		v.messages(at.Child("values").Index(i), validation.NameIsDNSSubdomain(value, false))
	}
}

func (v *validator) podAffinity(
	required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm, at *field.Path,
) {
	for i, term := range required {
		v.podTerm(term, at.Child("requiredDuringSchedulingIgnoredDuringExecution").Index(i))
	}
	for i, term := range preferred {
		at := at.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i)
		v.weight(term.Weight, at.Child("weight"))
		v.podTerm(term.PodAffinityTerm, at.Child("podAffinityTerm"))
	}
}

func (v *validator) podTerm(term corev1.PodAffinityTerm, at *field.Path) {
	v.labelSelector(term.LabelSelector, at.Child("labelSelector"))
	v.labelSelector(term.NamespaceSelector, at.Child("namespaceSelector"))
	for _, namespace := range term.Namespaces {
		v.messages(at.Child("namespace"), validation.ValidateNamespaceName(namespace, false))
	}
	v.labelKeys(term.MatchLabelKeys, term.MismatchLabelKeys, term.LabelSelector, at)
	v.notEmpty(at.Child("topologyKey"), term.TopologyKey)
	v.adopt(metav1validation.ValidateLabelName(term.TopologyKey, at.Child("topologyKey")))
}
