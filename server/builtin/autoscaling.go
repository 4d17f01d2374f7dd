package builtin

import (
	"encoding/json"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// autoscalingV1 is the version that knows the utilization of the processor alone. Annotations have
// the other fields of the stored version.
var autoscalingV1 = collection.Version{
	Kind: watchcache.Kind[store.Object]{
		Group: autoscalingv1.GroupName, Version: "v1", New: func() store.Object { return &autoscalingv1.HorizontalPodAutoscaler{} },
	},
	To: func(stored store.Object) store.Object {
		return oldAutoscaler(stored.(*autoscalingv2.HorizontalPodAutoscaler))
	},
	From: func(obj store.Object) store.Object {
		return newAutoscaler(obj.(*autoscalingv1.HorizontalPodAutoscaler))
	},
}

// The annotations, as kube-apiserver calls them.
const (
	autoscalerPrefix     = "autoscaling.alpha.kubernetes.io/"
	autoscalerMetrics    = autoscalerPrefix + "metrics"
	autoscalerStatuses   = autoscalerPrefix + "current-metrics"
	autoscalerConditions = autoscalerPrefix + "conditions"
	autoscalerBehavior   = autoscalerPrefix + "behavior"
)

// defaultUtilization is wanted of an autoscaler without metrics.
const defaultUtilization = 80

// withoutFields are the annotations but for those that have fields.
func withoutFields(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)
	for _, name := range []string{
		autoscalerMetrics, autoscalerStatuses, autoscalerConditions, autoscalerBehavior,
		autoscalerPrefix + "scale-down-tolerance", autoscalerPrefix + "scale-up-tolerance",
	} {
		delete(kept, name)
	}
	return kept
}

func oldAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv1.HorizontalPodAutoscaler {
	old := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: h.ObjectMeta}
	copyEqual(&h.Spec, &old.Spec)
	copyEqual(&h.Status, &old.Status)
	old.Annotations = withoutFields(h.Annotations)
	var metrics []autoscalingv1.MetricSpec
	for _, m := range h.Spec.Metrics {
		if utilization := utilizationOf(m); utilization == nil {
			metrics = append(metrics, oldMetric(m))
		} else if old.Spec.TargetCPUUtilizationPercentage == nil {
			old.Spec.TargetCPUUtilizationPercentage = utilization
		}
	}
	var statuses []autoscalingv1.MetricStatus
	for _, m := range h.Status.CurrentMetrics {
		statuses = append(statuses, oldStatus(m))
		if r := m.Resource; m.Type == autoscalingv2.ResourceMetricSourceType && r != nil && r.Name == corev1.ResourceCPU && r.Current.AverageUtilization != nil {
			old.Status.CurrentCPUUtilizationPercentage = r.Current.AverageUtilization
		}
	}
	annotate(old, autoscalerMetrics, metrics, len(metrics) > 0)
	annotate(old, autoscalerStatuses, statuses, len(statuses) > 0)
	annotate(old, autoscalerConditions, h.Status.Conditions, len(h.Status.Conditions) > 0)
	if b := h.Spec.Behavior; b != nil {
		annotate(old, autoscalerBehavior, behavior{rulesOf(b.ScaleUp), rulesOf(b.ScaleDown)}, true)
	}
	return old
}

// copyEqual copies the fields that both versions call alike, and that have the same types there.
func copyEqual(from, into any) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err == nil {
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(content, into)
	}
}

// utilizationOf is the wanted utilization of the processor; nil for another metric.
func utilizationOf(m autoscalingv2.MetricSpec) *int32 {
	if m.Type != autoscalingv2.ResourceMetricSourceType || m.Resource == nil || m.Resource.Name != corev1.ResourceCPU {
		return nil
	}
	return m.Resource.Target.AverageUtilization
}

func annotate(old *autoscalingv1.HorizontalPodAutoscaler, name string, value any, there bool) {
	text, err := json.Marshal(value)
	if !there || err != nil {
		return
	}
	if old.Annotations == nil {
		old.Annotations = map[string]string{}
	}
	old.Annotations[name] = string(text)
}

func newAutoscaler(old *autoscalingv1.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscaler {
	h := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: old.ObjectMeta}
	copyEqual(&old.Spec, &h.Spec)
	copyEqual(&old.Status, &h.Status)
	h.Annotations = withoutFields(old.Annotations)
	metrics, _ := annotated[[]autoscalingv1.MetricSpec](old, autoscalerMetrics)
	for _, m := range metrics {
		h.Spec.Metrics = append(h.Spec.Metrics, newMetric(m))
	}
	if utilization := old.Spec.TargetCPUUtilizationPercentage; utilization != nil {
		h.Spec.Metrics = append(h.Spec.Metrics, ofProcessor(*utilization))
	}
	if len(h.Spec.Metrics) == 0 {
		h.Spec.Metrics = []autoscalingv2.MetricSpec{ofProcessor(defaultUtilization)}
	}
	// The names of fields are those of JSON but for their case, which decoding does not look at.
	given, _ := annotated[autoscalingv2.HorizontalPodAutoscalerBehavior](old, autoscalerBehavior)
	if given != (autoscalingv2.HorizontalPodAutoscalerBehavior{}) {
		h.Spec.Behavior = &given
	}
	if utilization := old.Status.CurrentCPUUtilizationPercentage; utilization != nil {
		h.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{
			Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
				Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: utilization},
			},
		}}
	}
	if statuses, ok := annotated[[]autoscalingv1.MetricStatus](old, autoscalerStatuses); ok { // they say more
		h.Status.CurrentMetrics = nil
		for _, m := range statuses {
			h.Status.CurrentMetrics = append(h.Status.CurrentMetrics, newStatus(m))
		}
	}
	h.Status.Conditions, _ = annotated[[]autoscalingv2.HorizontalPodAutoscalerCondition](old, autoscalerConditions)
	return h
}

// annotated reads an annotation. An undecodable annotation says nothing.
func annotated[V any](old *autoscalingv1.HorizontalPodAutoscaler, name string) (value V, ok bool) {
	text, ok := old.Annotations[name]
	if !ok || json.Unmarshal([]byte(text), &value) != nil {
		var none V
		return none, false
	}
	return value, true
}

func ofProcessor(utilization int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{
		Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{
				Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To(utilization),
			},
		},
	}
}

// behavior is the annotation's form of a behavior: kube-apiserver writes a type of its own there,
// whose fields have no JSON names.
type (
	behavior struct{ ScaleUp, ScaleDown *scalingRules }

	scalingRules struct {
		StabilizationWindowSeconds *int32
		SelectPolicy               *autoscalingv2.ScalingPolicySelect
		Policies                   []scalingPolicy
		Tolerance                  *resource.Quantity
	}

	scalingPolicy struct {
		Type          autoscalingv2.HPAScalingPolicyType
		Value         int32
		PeriodSeconds int32
	}
)

func rulesOf(r *autoscalingv2.HPAScalingRules) *scalingRules {
	if r == nil {
		return nil
	}
	rules := &scalingRules{
		StabilizationWindowSeconds: r.StabilizationWindowSeconds, SelectPolicy: r.SelectPolicy, Tolerance: r.Tolerance,
	}
	for _, policy := range r.Policies {
		rules.Policies = append(rules.Policies, scalingPolicy(policy))
	}
	return rules
}

func defaultAutoscaler(obj store.Object) {
	h := obj.(*autoscalingv2.HorizontalPodAutoscaler)
	h.Annotations = withoutFields(h.Annotations)
	spec := &h.Spec
	if spec.MinReplicas == nil {
		spec.MinReplicas = ptr.To[int32](1)
	}
	if len(spec.Metrics) == 0 {
		spec.Metrics = []autoscalingv2.MetricSpec{ofProcessor(defaultUtilization)}
	}
	if b := spec.Behavior; b != nil {
		b.ScaleUp = defaultScaling(b.ScaleUp, ptr.To[int32](0),
			autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
			autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
		b.ScaleDown = defaultScaling(b.ScaleDown, nil,
			autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
	}
}

func defaultScaling(given *autoscalingv2.HPAScalingRules, window *int32, policies ...autoscalingv2.HPAScalingPolicy) *autoscalingv2.HPAScalingRules {
	if given == nil {
		given = &autoscalingv2.HPAScalingRules{}
	}
	if given.SelectPolicy == nil {
		given.SelectPolicy = ptr.To(autoscalingv2.MaxChangePolicySelect)
	}
	if given.StabilizationWindowSeconds == nil {
		given.StabilizationWindowSeconds = window
	}
	if given.Policies == nil {
		given.Policies = policies
	}
	return given
}
