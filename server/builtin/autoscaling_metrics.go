package builtin

import (
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// metricFields are the fields of a metric by its source, as the new version calls them and as the
// annotations of the old one do. @ is target in what is wanted, and current in what is measured.
var metricFields = map[string][][2]string{
	"object": {
		{"describedObject", "target"}, {"metric.name", "metricName"}, {"metric.selector", "selector"},
		{"@.value", "@Value"}, {"@.averageValue", "averageValue"},
	},
	"pods": {
		{"metric.name", "metricName"}, {"metric.selector", "selector"}, {"@.averageValue", "@AverageValue"},
	},
	"resource": {
		{"name", "name"}, {"@.averageUtilization", "@AverageUtilization"}, {"@.averageValue", "@AverageValue"},
	},
	"containerResource": {
		{"name", "name"}, {"container", "container"},
		{"@.averageUtilization", "@AverageUtilization"}, {"@.averageValue", "@AverageValue"},
	},
	"external": {
		{"metric.name", "metricName"}, {"metric.selector", "metricSelector"},
		{"@.value", "@Value"}, {"@.averageValue", "@AverageValue"},
	},
}

// The versions, by their places in metricFields.
const newName, oldName = 0, 1

// translated is a metric in the other version. A number that the new version leaves out is 0 in the
// old one.
func translated[M any](metric any, from int, word string) (m M) {
	given, err := runtime.DefaultUnstructuredConverter.ToUnstructured(metric)
	if err != nil {
		return m
	}
	made := map[string]any{"type": given["type"]}
	for source, fields := range metricFields {
		for _, names := range fields {
			path := func(version int) []string {
				return strings.Split(source+"."+strings.ReplaceAll(names[version], "@", word), ".")
			}
			if value, found, _ := unstructured.NestedFieldNoCopy(given, path(from)...); found {
				_ = unstructured.SetNestedField(made, value, path(1-from)...) // our maps
			}
		}
	}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(made, &m) // the types are equal
	return m
}

func oldMetric(m autoscalingv2.MetricSpec) autoscalingv1.MetricSpec {
	return translated[autoscalingv1.MetricSpec](&m, newName, "target")
}

func oldStatus(m autoscalingv2.MetricStatus) autoscalingv1.MetricStatus {
	return translated[autoscalingv1.MetricStatus](&m, newName, "current")
}

func newStatus(old autoscalingv1.MetricStatus) autoscalingv2.MetricStatus {
	return translated[autoscalingv2.MetricStatus](&old, oldName, "current")
}

// newMetric also finds the type of the target, which the old version does not name.
func newMetric(old autoscalingv1.MetricSpec) autoscalingv2.MetricSpec {
	m := translated[autoscalingv2.MetricSpec](&old, oldName, "target")
	set := func(target *autoscalingv2.MetricTarget, isValue bool) {
		switch target.Type = autoscalingv2.AverageValueMetricType; {
		case target.AverageUtilization != nil:
			target.Type = autoscalingv2.UtilizationMetricType
		case isValue:
			target.Type = autoscalingv2.ValueMetricType
		}
	}
	if s := m.Object; s != nil {
		if s.Target.AverageValue != nil && s.Target.Value.IsZero() {
			s.Target.Value = nil
		}
		set(&s.Target, s.Target.AverageValue == nil)
	}
	if s := m.Pods; s != nil {
		set(&s.Target, false)
	}
	if s := m.Resource; s != nil {
		set(&s.Target, false)
	}
	if s := m.ContainerResource; s != nil {
		set(&s.Target, false)
	}
	if s := m.External; s != nil {
		set(&s.Target, s.Target.Value != nil)
	}
	return m
}
