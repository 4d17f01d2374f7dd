package builtin

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The metrics of an autoscaler as the annotations of the old version have them: a number that the
// new version leaves out is 0 there.

func number(q *resource.Quantity) (n resource.Quantity) {
	if q != nil {
		n = *q
	}
	return n
}

func oldMetric(m autoscalingv2.MetricSpec) autoscalingv1.MetricSpec {
	old := autoscalingv1.MetricSpec{Type: autoscalingv1.MetricSourceType(m.Type)}
	if s := m.Object; s != nil {
		old.Object = &autoscalingv1.ObjectMetricSource{
			Target: autoscalingv1.CrossVersionObjectReference(s.DescribedObject), MetricName: s.Metric.Name,
			TargetValue: number(s.Target.Value), Selector: s.Metric.Selector, AverageValue: s.Target.AverageValue,
		}
	}
	if s := m.Pods; s != nil {
		old.Pods = &autoscalingv1.PodsMetricSource{
			MetricName: s.Metric.Name, TargetAverageValue: number(s.Target.AverageValue), Selector: s.Metric.Selector,
		}
	}
	if s := m.Resource; s != nil {
		old.Resource = &autoscalingv1.ResourceMetricSource{
			Name: s.Name, TargetAverageUtilization: s.Target.AverageUtilization, TargetAverageValue: s.Target.AverageValue,
		}
	}
	if s := m.ContainerResource; s != nil {
		old.ContainerResource = &autoscalingv1.ContainerResourceMetricSource{
			Name: s.Name, TargetAverageUtilization: s.Target.AverageUtilization, TargetAverageValue: s.Target.AverageValue,
			Container: s.Container,
		}
	}
	if s := m.External; s != nil {
		old.External = &autoscalingv1.ExternalMetricSource{
			MetricName: s.Metric.Name, MetricSelector: s.Metric.Selector, TargetValue: s.Target.Value,
			TargetAverageValue: s.Target.AverageValue,
		}
	}
	return old
}

func newMetric(old autoscalingv1.MetricSpec) autoscalingv2.MetricSpec {
	m := autoscalingv2.MetricSpec{Type: autoscalingv2.MetricSourceType(old.Type)}
	if s := old.Object; s != nil {
		target := autoscalingv2.MetricTarget{Type: autoscalingv2.ValueMetricType, Value: &s.TargetValue}
		if s.AverageValue != nil {
			target = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: s.AverageValue}
			if !s.TargetValue.IsZero() {
				target.Value = &s.TargetValue
			}
		}
		m.Object = &autoscalingv2.ObjectMetricSource{
			DescribedObject: autoscalingv2.CrossVersionObjectReference(s.Target), Target: target,
			Metric: autoscalingv2.MetricIdentifier{Name: s.MetricName, Selector: s.Selector},
		}
	}
	if s := old.Pods; s != nil {
		m.Pods = &autoscalingv2.PodsMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: s.MetricName, Selector: s.Selector},
			Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &s.TargetAverageValue},
		}
	}
	if s := old.Resource; s != nil {
		m.Resource = &autoscalingv2.ResourceMetricSource{Name: s.Name, Target: average(s.TargetAverageUtilization, s.TargetAverageValue)}
	}
	if s := old.ContainerResource; s != nil {
		m.ContainerResource = &autoscalingv2.ContainerResourceMetricSource{
			Name: s.Name, Target: average(s.TargetAverageUtilization, s.TargetAverageValue), Container: s.Container,
		}
	}
	if s := old.External; s != nil {
		target := autoscalingv2.MetricTarget{
			Type: autoscalingv2.AverageValueMetricType, Value: s.TargetValue, AverageValue: s.TargetAverageValue,
		}
		if s.TargetValue != nil {
			target.Type = autoscalingv2.ValueMetricType
		}
		m.External = &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: s.MetricName, Selector: s.MetricSelector}, Target: target,
		}
	}
	return m
}

// average is the target of a resource.
func average(utilization *int32, value *resource.Quantity) autoscalingv2.MetricTarget {
	target := autoscalingv2.MetricTarget{
		Type: autoscalingv2.UtilizationMetricType, AverageUtilization: utilization, AverageValue: value,
	}
	if utilization == nil {
		target.Type = autoscalingv2.AverageValueMetricType
	}
	return target
}

func oldStatus(m autoscalingv2.MetricStatus) autoscalingv1.MetricStatus {
	old := autoscalingv1.MetricStatus{Type: autoscalingv1.MetricSourceType(m.Type)}
	if s := m.Object; s != nil {
		old.Object = &autoscalingv1.ObjectMetricStatus{
			Target: autoscalingv1.CrossVersionObjectReference(s.DescribedObject), MetricName: s.Metric.Name,
			CurrentValue: number(s.Current.Value), Selector: s.Metric.Selector, AverageValue: s.Current.AverageValue,
		}
	}
	if s := m.Pods; s != nil {
		old.Pods = &autoscalingv1.PodsMetricStatus{
			MetricName: s.Metric.Name, CurrentAverageValue: number(s.Current.AverageValue), Selector: s.Metric.Selector,
		}
	}
	if s := m.Resource; s != nil {
		old.Resource = &autoscalingv1.ResourceMetricStatus{
			Name: s.Name, CurrentAverageUtilization: s.Current.AverageUtilization, CurrentAverageValue: number(s.Current.AverageValue),
		}
	}
	if s := m.ContainerResource; s != nil {
		old.ContainerResource = &autoscalingv1.ContainerResourceMetricStatus{
			Name: s.Name, CurrentAverageUtilization: s.Current.AverageUtilization, CurrentAverageValue: number(s.Current.AverageValue),
			Container: s.Container,
		}
	}
	if s := m.External; s != nil {
		old.External = &autoscalingv1.ExternalMetricStatus{
			MetricName: s.Metric.Name, MetricSelector: s.Metric.Selector, CurrentValue: number(s.Current.Value),
			CurrentAverageValue: s.Current.AverageValue,
		}
	}
	return old
}

func newStatus(old autoscalingv1.MetricStatus) autoscalingv2.MetricStatus {
	m := autoscalingv2.MetricStatus{Type: autoscalingv2.MetricSourceType(old.Type)}
	if s := old.Object; s != nil {
		m.Object = &autoscalingv2.ObjectMetricStatus{
			Metric:          autoscalingv2.MetricIdentifier{Name: s.MetricName, Selector: s.Selector},
			Current:         autoscalingv2.MetricValueStatus{Value: &s.CurrentValue, AverageValue: s.AverageValue},
			DescribedObject: autoscalingv2.CrossVersionObjectReference(s.Target),
		}
	}
	if s := old.Pods; s != nil {
		m.Pods = &autoscalingv2.PodsMetricStatus{
			Metric:  autoscalingv2.MetricIdentifier{Name: s.MetricName, Selector: s.Selector},
			Current: autoscalingv2.MetricValueStatus{AverageValue: &s.CurrentAverageValue},
		}
	}
	if s := old.Resource; s != nil {
		m.Resource = &autoscalingv2.ResourceMetricStatus{Name: s.Name, Current: autoscalingv2.MetricValueStatus{
			AverageValue: &s.CurrentAverageValue, AverageUtilization: s.CurrentAverageUtilization,
		}}
	}
	if s := old.ContainerResource; s != nil {
		m.ContainerResource = &autoscalingv2.ContainerResourceMetricStatus{
			Name: s.Name, Container: s.Container, Current: autoscalingv2.MetricValueStatus{
				AverageValue: &s.CurrentAverageValue, AverageUtilization: s.CurrentAverageUtilization,
			},
		}
	}
	if s := old.External; s != nil {
		m.External = &autoscalingv2.ExternalMetricStatus{
			Metric:  autoscalingv2.MetricIdentifier{Name: s.MetricName, Selector: s.MetricSelector},
			Current: autoscalingv2.MetricValueStatus{Value: &s.CurrentValue, AverageValue: s.CurrentAverageValue},
		}
	}
	return m
}
