package builtin

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

func firstSeen(e *corev1.Event) any {
	if e.FirstTimestamp.IsZero() {
		return since(metav1.Time(e.EventTime))
	}
	return since(e.FirstTimestamp)
}

func lastSeen(e *corev1.Event) any {
	switch {
	case e.Series != nil:
		return since(metav1.Time(e.Series.LastObservedTime))
	case e.LastTimestamp.IsZero():
		return firstSeen(e)
	}
	return since(e.LastTimestamp)
}

func eventSource(e *corev1.Event) any {
	component, host := or(e.Source.Component, e.ReportingController), or(e.Source.Host, e.ReportingInstance)
	if host == "" {
		return component
	}
	return component + ", " + host
}

func ingressHosts(i *networkingv1.Ingress) any {
	const most = 3
	var hosts []string
	for _, rule := range i.Spec.Rules {
		if rule.Host != "" {
			hosts = append(hosts, rule.Host)
		}
	}
	switch {
	case len(hosts) == 0:
		return "*"
	case len(i.Spec.Rules) > most:
		return fmt.Sprintf("%s + %d more...", strings.Join(hosts[:min(most, len(hosts))], ","), len(i.Spec.Rules)-most)
	}
	return strings.Join(hosts, ",")
}

func jobStatus(j *batchv1.Job) any {
	is := func(t batchv1.JobConditionType) bool {
		return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == t && c.Status == corev1.ConditionTrue
		})
	}
	switch {
	case is(batchv1.JobComplete):
		return "Complete"
	case is(batchv1.JobFailed):
		return "Failed"
	case j.DeletionTimestamp != nil:
		return "Terminating"
	case is(batchv1.JobSuspended):
		return "Suspended"
	case is(batchv1.JobFailureTarget):
		return "FailureTarget"
	case is(batchv1.JobSuccessCriteriaMet):
		return "SuccessCriteriaMet"
	}
	return "Running"
}

func jobCompletions(j *batchv1.Job) any {
	switch parallelism := value(j.Spec.Parallelism); {
	case j.Spec.Completions != nil:
		return of(j.Status.Succeeded, *j.Spec.Completions)
	case parallelism > 1:
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, parallelism)
	}
	return of(j.Status.Succeeded, 1)
}

func jobDuration(j *batchv1.Job) any {
	switch {
	case j.Status.StartTime == nil:
		return ""
	case j.Status.CompletionTime == nil:
		return since(*j.Status.StartTime)
	}
	return duration.HumanDuration(j.Status.CompletionTime.Sub(j.Status.StartTime.Time))
}

func nodeStatus(n *corev1.Node) any {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status = "NotReady"
			if c.Status == corev1.ConditionTrue {
				status = "Ready"
			}
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(n *corev1.Node) any {
	const prefix, single = "node-role.kubernetes.io/", "kubernetes.io/role"
	var roles []string
	for key, value := range n.Labels {
		if role, ok := strings.CutPrefix(key, prefix); ok && role != "" {
			roles = append(roles, role)
		} else if key == single && value != "" {
			roles = append(roles, value)
		}
	}
	slices.Sort(roles)
	return orNone(strings.Join(slices.Compact(roles), ","))
}

func nodeAddress(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return none
}

func claimModes(c *corev1.PersistentVolumeClaim) any {
	if c.Spec.VolumeName == "" {
		return ""
	}
	return accessModes(c.Status.AccessModes)
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

func externalIP(s *corev1.Service) any {
	addresses := slices.Clone(s.Spec.ExternalIPs)
	switch s.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var assigned []string
		for _, a := range s.Status.LoadBalancer.Ingress {
			assigned = append(assigned, or(a.IP, a.Hostname))
		}
		return or(strings.Join(append(assigned, addresses...), ","), "<pending>")
	}
	return orNone(strings.Join(addresses, ","))
}

func servicePorts(s *corev1.Service) any {
	var ports []string
	for _, p := range s.Spec.Ports {
		port := fmt.Sprint(p.Port)
		if p.NodePort > 0 {
			port = fmt.Sprintf("%d:%d", p.Port, p.NodePort)
		}
		ports = append(ports, port+"/"+string(p.Protocol))
	}
	return orNone(strings.Join(ports, ","))
}

type fieldLabel = watchcache.Field[store.Object]

func selectable[T store.Object](label string, value func(T) string) fieldLabel {
	return fieldLabel{Label: label, Value: func(obj store.Object) string { return value(obj.(T)) }}
}

// fields are the field labels of a kind beside its name and namespace.
var fields = map[string][]fieldLabel{
	"CertificateSigningRequest": {
		selectable("spec.signerName", func(c *certificatesv1.CertificateSigningRequest) string { return c.Spec.SignerName }),
	},
	"Event": {
		selectable("involvedObject.kind", func(e *corev1.Event) string { return e.InvolvedObject.Kind }),
		selectable("involvedObject.namespace", func(e *corev1.Event) string { return e.InvolvedObject.Namespace }),
		selectable("involvedObject.name", func(e *corev1.Event) string { return e.InvolvedObject.Name }),
		selectable("involvedObject.uid", func(e *corev1.Event) string { return string(e.InvolvedObject.UID) }),
		selectable("involvedObject.apiVersion", func(e *corev1.Event) string { return e.InvolvedObject.APIVersion }),
		selectable("involvedObject.resourceVersion", func(e *corev1.Event) string { return e.InvolvedObject.ResourceVersion }),
		selectable("involvedObject.fieldPath", func(e *corev1.Event) string { return e.InvolvedObject.FieldPath }),
		selectable("reason", func(e *corev1.Event) string { return e.Reason }),
		selectable("reportingComponent", func(e *corev1.Event) string { return or(e.Source.Component, e.ReportingController) }),
		selectable("source", func(e *corev1.Event) string { return or(e.Source.Component, e.ReportingController) }),
		selectable("type", func(e *corev1.Event) string { return e.Type }),
	},
	"Job":       {selectable("status.successful", func(j *batchv1.Job) string { return fmt.Sprint(j.Status.Succeeded) })},
	"Namespace": {selectable("status.phase", func(n *corev1.Namespace) string { return string(n.Status.Phase) })},
	"Node": {selectable("spec.unschedulable", func(n *corev1.Node) string {
		return fmt.Sprint(n.Spec.Unschedulable)
	})},
	"ReplicationController": {selectable("status.replicas", func(r *corev1.ReplicationController) string { return fmt.Sprint(r.Status.Replicas) })},
	"ResourceSlice": {
		selectable(resourcev1.ResourceSliceSelectorNodeName, func(s *resourcev1.ResourceSlice) string { return ptr.Deref(s.Spec.NodeName, "") }),
		selectable(resourcev1.ResourceSliceSelectorDriver, func(s *resourcev1.ResourceSlice) string { return s.Spec.Driver }),
	},
	"Secret": {selectable("type", func(s *corev1.Secret) string { return string(s.Type) })},
	"Service": {
		selectable("spec.clusterIP", func(s *corev1.Service) string { return s.Spec.ClusterIP }),
		selectable("spec.type", func(s *corev1.Service) string { return string(s.Spec.Type) }),
	},
}
