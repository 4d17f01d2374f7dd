package builtin

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// These are the cells that are more than a line of columns.txt.

func ingressHosts(rules []networkingv1.IngressRule) string {
	const most = 3
	var hosts []string
	for _, rule := range rules {
		if rule.Host != "" {
			hosts = append(hosts, rule.Host)
		}
	}
	switch {
	case len(hosts) == 0:
		return "*"
	case len(rules) > most:
		return fmt.Sprintf("%s + %d more...", strings.Join(hosts[:min(most, len(hosts))], ","), len(rules)-most)
	}
	return strings.Join(hosts, ",")
}

func nodeRoles(labels map[string]string) string {
	const prefix, single = "node-role.kubernetes.io/", "kubernetes.io/role"
	var roles []string
	for key, value := range labels {
		if role, ok := strings.CutPrefix(key, prefix); ok && role != "" {
			roles = append(roles, role)
		} else if key == single && value != "" {
			roles = append(roles, value)
		}
	}
	slices.Sort(roles)
	return cmp.Or(strings.Join(slices.Compact(roles), ","), none)
}

func accessModes(given []corev1.PersistentVolumeAccessMode) string {
	short := map[corev1.PersistentVolumeAccessMode]string{
		corev1.ReadWriteOnce: "RWO", corev1.ReadOnlyMany: "ROX", corev1.ReadWriteMany: "RWX", corev1.ReadWriteOncePod: "RWOP",
	}
	var modes []string
	for _, mode := range given {
		modes = append(modes, short[mode])
	}
	return strings.Join(modes, ",")
}

func externalIP(s *corev1.Service) string {
	addresses := slices.Clone(s.Spec.ExternalIPs)
	switch s.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var assigned []string
		for _, a := range s.Status.LoadBalancer.Ingress {
			assigned = append(assigned, cmp.Or(a.IP, a.Hostname))
		}
		return cmp.Or(strings.Join(append(assigned, addresses...), ","), "<pending>")
	}
	return cmp.Or(strings.Join(addresses, ","), none)
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

const unset = "<unset>"

func sliceAddresses(endpoints []discoveryv1.Endpoint) string {
	var all []string
	for _, e := range endpoints {
		all = append(all, e.Addresses...)
	}
	return cmp.Or(first(all, 3, ","), unset)
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
	return cmp.Or(first(all, 3, ","), unset)
}

// quotaUse has the counts of a quota, of limits or of everything else.
func quotaUse(s corev1.ResourceQuotaStatus, limits bool) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.Hard)) {
		if strings.HasPrefix(string(name), "limits.") == limits {
			used, hard := s.Used[name], s.Hard[name]
			all = append(all, fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String()))
		}
	}
	return strings.Join(all, ", ")
}

func controller(owners []metav1.OwnerReference) string {
	for _, owner := range owners {
		if value(owner.Controller) {
			kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
			return strings.ToLower(kind.String()) + "/" + owner.Name
		}
	}
	return none
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
	return cmp.Or(first(all, 2, ", "), none)
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
