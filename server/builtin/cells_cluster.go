package builtin

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// first joins some texts, and counts the others.
func first(texts []string, some int, separator string) string {
	if len(texts) <= some {
		return strings.Join(texts, separator)
	}
	return fmt.Sprintf("%s + %d more...", strings.Join(texts[:some], separator), len(texts)-some)
}

//lint:ignore SA1019 deprecated, and served by kube-apiserver
func endpointAddresses(subsets []corev1.EndpointSubset) string {
	if len(subsets) == 0 {
		return none
	}
	var all []string
	for _, subset := range subsets {
		for _, address := range subset.Addresses {
			if len(subset.Ports) == 0 {
				all = append(all, address.IP)
			}
		}
		for _, port := range subset.Ports {
			for _, address := range subset.Addresses {
				all = append(all, net.JoinHostPort(address.IP, strconv.Itoa(int(port.Port))))
			}
		}
	}
	return first(all, 3, ",")
}

func slicePorts(ports []discoveryv1.EndpointPort) string {
	var all []string
	for _, port := range ports {
		switch {
		case port.Port != nil:
			all = append(all, fmt.Sprint(*port.Port))
		case port.Name != nil:
			all = append(all, *port.Name)
		default:
			all = append(all, "*")
		}
	}
	return orUnset(first(all, 3, ","))
}

// quotaUse is what a quota counts, of limits or of everything else.
func quotaUse(q *corev1.ResourceQuota, limits bool) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		if strings.HasPrefix(string(name), "limits.") == limits {
			used, hard := q.Status.Used[name], q.Status.Hard[name]
			all = append(all, fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String()))
		}
	}
	return strings.Join(all, ", ")
}

func certificateState(c *certificatesv1.CertificateSigningRequest) string {
	has := func(t certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(c.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == t })
	}
	state := "Pending"
	if has(certificatesv1.CertificateDenied) {
		state = "Denied"
	} else if has(certificatesv1.CertificateApproved) {
		state = "Approved"
	}
	if has(certificatesv1.CertificateFailed) {
		state += ",Failed"
	}
	if len(c.Status.Certificate) > 0 {
		state += ",Issued"
	}
	return state
}

// scalingTargets are the metrics of an autoscaler, each as current/target.
func scalingTargets(specs []autoscalingv2.MetricSpec, statuses []autoscalingv2.MetricStatus) string {
	var all []string
	for i, spec := range specs {
		var status autoscalingv2.MetricStatus
		if i < len(statuses) {
			status = statuses[i]
		}
		all = append(all, scalingTarget(spec, status))
	}
	return orNone(first(all, 2, ", "))
}

func scalingTarget(spec autoscalingv2.MetricSpec, status autoscalingv2.MetricStatus) string {
	switch spec.Type {
	case autoscalingv2.ExternalMetricSourceType:
		return measured(spec.External.Target, value(status.External).Current, status.External != nil)
	case autoscalingv2.ObjectMetricSourceType:
		return measured(spec.Object.Target, value(status.Object).Current, status.Object != nil)
	case autoscalingv2.PodsMetricSourceType:
		return quantity(value(status.Pods).Current.AverageValue) + "/" + quantity(spec.Pods.Target.AverageValue)
	case autoscalingv2.ResourceMetricSourceType:
		return string(spec.Resource.Name) + ": " + utilised(spec.Resource.Target, value(status.Resource).Current)
	case autoscalingv2.ContainerResourceMetricSourceType:
		return string(spec.ContainerResource.Name) + ": " + utilised(spec.ContainerResource.Target, value(status.ContainerResource).Current)
	}
	return "<unknown type>"
}

func measured(target autoscalingv2.MetricTarget, current autoscalingv2.MetricValueStatus, known bool) string {
	switch {
	case target.AverageValue != nil:
		return quantity(current.AverageValue) + "/" + quantity(target.AverageValue) + " (avg)"
	case !known:
		return unknown + "/" + quantity(target.Value)
	}
	return quantity(current.Value) + "/" + quantity(target.Value)
}

func utilised(target autoscalingv2.MetricTarget, current autoscalingv2.MetricValueStatus) string {
	if target.AverageValue != nil {
		return quantity(current.AverageValue) + "/" + quantity(target.AverageValue)
	}
	percent := func(p *int32, instead string) string {
		if p == nil {
			return instead
		}
		return fmt.Sprintf("%d%%", *p)
	}
	return percent(current.AverageUtilization, unknown) + "/" + percent(target.AverageUtilization, "<auto>")
}

func quantity(q *resource.Quantity) string {
	if q == nil {
		return unknown
	}
	return q.String()
}
