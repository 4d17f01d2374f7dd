package builtin

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/store"
)

type column = apiserver.Column[store.Object]

// shown is a column; hidden one that only wide tables have. Cells of a Go type that is a number or
// a bool are of that OpenAPI type; those of any are strings, as the API server has some numbers.
func shown[T store.Object, V any](name string, value func(T) V) column {
	c := column{Name: name, Value: func(obj store.Object) any {
		switch v := any(value(obj.(T))).(type) {
		case int:
			return int64(v)
		case int32:
			return int64(v)
		default:
			return v
		}
	}}
	switch reflect.TypeFor[V]().Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		c.Type = "integer"
	case reflect.Bool:
		c.Type = "boolean"
	}
	return c
}

func hidden[T store.Object, V any](name string, value func(T) V) column {
	c := shown(name, value)
	c.Wide = true
	return c
}

var age = apiserver.AgeColumn[store.Object]()

// columns are those that kubectl get shows, behind the name, as kube-apiserver 1.36 has them. Kinds
// that are not here show their age.
var columns = map[string][]column{
	"ConfigMap": {
		shown("Data", func(m *corev1.ConfigMap) any { return len(m.Data) + len(m.BinaryData) }), age,
	},
	"CronJob": append([]column{
		shown("Schedule", func(c *batchv1.CronJob) any { return c.Spec.Schedule }),
		shown("Timezone", func(c *batchv1.CronJob) any { return orNone(value(c.Spec.TimeZone)) }),
		{Name: "Suspend", Type: "boolean", Value: func(obj store.Object) any { return title(obj.(*batchv1.CronJob).Spec.Suspend) }},
		shown("Active", func(c *batchv1.CronJob) int { return len(c.Status.Active) }),
		shown("Last Schedule", func(c *batchv1.CronJob) any {
			if c.Status.LastScheduleTime == nil {
				return none
			}
			return since(*c.Status.LastScheduleTime)
		}),
		age,
	}, containers(func(c *batchv1.CronJob) (corev1.PodSpec, string) {
		return c.Spec.JobTemplate.Spec.Template.Spec, metav1.FormatLabelSelector(c.Spec.JobTemplate.Spec.Selector)
	})...),
	"DaemonSet": append([]column{
		shown("Desired", func(d *appsv1.DaemonSet) int32 { return d.Status.DesiredNumberScheduled }),
		shown("Current", func(d *appsv1.DaemonSet) int32 { return d.Status.CurrentNumberScheduled }),
		shown("Ready", func(d *appsv1.DaemonSet) int32 { return d.Status.NumberReady }),
		shown("Up-to-date", func(d *appsv1.DaemonSet) int32 { return d.Status.UpdatedNumberScheduled }),
		shown("Available", func(d *appsv1.DaemonSet) int32 { return d.Status.NumberAvailable }),
		shown("Node Selector", func(d *appsv1.DaemonSet) any {
			return labels.FormatLabels(d.Spec.Template.Spec.NodeSelector)
		}),
		age,
	}, containers(func(d *appsv1.DaemonSet) (corev1.PodSpec, string) {
		return d.Spec.Template.Spec, metav1.FormatLabelSelector(d.Spec.Selector)
	})...),
	"Deployment": append([]column{
		shown("Ready", func(d *appsv1.Deployment) any { return of(d.Status.ReadyReplicas, value(d.Spec.Replicas)) }),
		shown("Up-to-date", func(d *appsv1.Deployment) any { return d.Status.UpdatedReplicas }),
		shown("Available", func(d *appsv1.Deployment) any { return d.Status.AvailableReplicas }),
		age,
	}, containers(func(d *appsv1.Deployment) (corev1.PodSpec, string) {
		return d.Spec.Template.Spec, metav1.FormatLabelSelector(d.Spec.Selector)
	})...),
	"Event": {
		shown("Last Seen", lastSeen),
		shown("Type", func(e *corev1.Event) any { return e.Type }),
		shown("Reason", func(e *corev1.Event) any { return e.Reason }),
		shown("Object", func(e *corev1.Event) any {
			object := strings.ToLower(e.InvolvedObject.Kind)
			if e.InvolvedObject.Name != "" {
				object += "/" + e.InvolvedObject.Name
			}
			return object
		}),
		hidden("Subobject", func(e *corev1.Event) any { return e.InvolvedObject.FieldPath }),
		hidden("Source", eventSource),
		shown("Message", func(e *corev1.Event) any { return strings.TrimSpace(e.Message) }),
		hidden("First Seen", firstSeen),
		hidden("Count", func(e *corev1.Event) any {
			if e.Series != nil {
				return e.Series.Count
			}
			return max(1, e.Count)
		}),
		asName(hidden("Name", func(e *corev1.Event) any { return e.Name })),
	},
	"Ingress": {
		shown("Class", func(i *networkingv1.Ingress) any { return orNone(value(i.Spec.IngressClassName)) }),
		shown("Hosts", ingressHosts),
		shown("Address", func(i *networkingv1.Ingress) any {
			var addresses []string
			for _, a := range i.Status.LoadBalancer.Ingress {
				addresses = append(addresses, a.IP+a.Hostname)
			}
			return strings.Join(addresses, ",")
		}),
		shown("Ports", func(i *networkingv1.Ingress) any {
			if len(i.Spec.TLS) > 0 {
				return "80, 443"
			}
			return "80"
		}),
		age,
	},
	"Job": append([]column{
		shown("Status", jobStatus),
		shown("Completions", jobCompletions),
		shown("Duration", jobDuration),
		age,
	}, containers(func(j *batchv1.Job) (corev1.PodSpec, string) {
		return j.Spec.Template.Spec, metav1.FormatLabelSelector(j.Spec.Selector)
	})...),
	"Lease": {
		shown("Holder", func(l *coordinationv1.Lease) any { return value(l.Spec.HolderIdentity) }), age,
	},
	"Namespace": {
		shown("Status", func(n *corev1.Namespace) any { return string(n.Status.Phase) }), age,
	},
	"NetworkPolicy": {
		shown("Pod-Selector", func(p *networkingv1.NetworkPolicy) any {
			return metav1.FormatLabelSelector(&p.Spec.PodSelector)
		}), age,
	},
	"Node": {
		shown("Status", nodeStatus),
		shown("Roles", nodeRoles),
		age,
		shown("Version", func(n *corev1.Node) any { return n.Status.NodeInfo.KubeletVersion }),
		hidden("Internal-IP", func(n *corev1.Node) any { return nodeAddress(n, corev1.NodeInternalIP) }),
		hidden("External-IP", func(n *corev1.Node) any { return nodeAddress(n, corev1.NodeExternalIP) }),
		hidden("OS-Image", func(n *corev1.Node) any { return orUnknown(n.Status.NodeInfo.OSImage) }),
		hidden("Kernel-Version", func(n *corev1.Node) any {
			version := orUnknown(n.Status.NodeInfo.KernelVersion)
			if n.Status.NodeInfo.Architecture != "" {
				version += " (" + n.Status.NodeInfo.Architecture + ")"
			}
			return version
		}),
		hidden("Container-Runtime", func(n *corev1.Node) any { return orUnknown(n.Status.NodeInfo.ContainerRuntimeVersion) }),
	},
	"PersistentVolumeClaim": {
		shown("Status", func(c *corev1.PersistentVolumeClaim) any {
			if c.DeletionTimestamp != nil {
				return "Terminating"
			}
			return string(c.Status.Phase)
		}),
		shown("Volume", func(c *corev1.PersistentVolumeClaim) any { return c.Spec.VolumeName }),
		shown("Capacity", func(c *corev1.PersistentVolumeClaim) any {
			if c.Spec.VolumeName == "" {
				return ""
			}
			return c.Status.Capacity.Storage().String()
		}),
		shown("Access Modes", claimModes),
		shown("StorageClass", func(c *corev1.PersistentVolumeClaim) any { return value(c.Spec.StorageClassName) }),
		shown("VolumeAttributesClass", func(c *corev1.PersistentVolumeClaim) any {
			return orUnset(value(c.Spec.VolumeAttributesClassName))
		}),
		age,
		hidden("VolumeMode", func(c *corev1.PersistentVolumeClaim) any {
			if c.Spec.VolumeMode == nil {
				return unset
			}
			return string(*c.Spec.VolumeMode)
		}),
	},
	"PodDisruptionBudget": {
		shown("Min Available", func(b *policyv1.PodDisruptionBudget) any {
			if b.Spec.MinAvailable == nil {
				return "N/A"
			}
			return b.Spec.MinAvailable.String()
		}),
		shown("Max Unavailable", func(b *policyv1.PodDisruptionBudget) any {
			if b.Spec.MaxUnavailable == nil {
				return "N/A"
			}
			return b.Spec.MaxUnavailable.String()
		}),
		shown("Allowed Disruptions", func(b *policyv1.PodDisruptionBudget) int32 { return b.Status.DisruptionsAllowed }),
		age,
	},
	"ReplicaSet": append([]column{
		shown("Desired", func(r *appsv1.ReplicaSet) int32 { return value(r.Spec.Replicas) }),
		shown("Current", func(r *appsv1.ReplicaSet) int32 { return r.Status.Replicas }),
		shown("Ready", func(r *appsv1.ReplicaSet) int32 { return r.Status.ReadyReplicas }),
		age,
	}, containers(func(r *appsv1.ReplicaSet) (corev1.PodSpec, string) {
		return r.Spec.Template.Spec, metav1.FormatLabelSelector(r.Spec.Selector)
	})...),
	"RoleBinding": append([]column{
		shown("Role", func(b *rbacv1.RoleBinding) any { return b.RoleRef.Kind + "/" + b.RoleRef.Name }), age,
	}, subjects(func(b *rbacv1.RoleBinding) []rbacv1.Subject { return b.Subjects })...),
	"ClusterRoleBinding": append([]column{
		shown("Role", func(b *rbacv1.ClusterRoleBinding) any { return b.RoleRef.Kind + "/" + b.RoleRef.Name }), age,
	}, subjects(func(b *rbacv1.ClusterRoleBinding) []rbacv1.Subject { return b.Subjects })...),
	"Secret": {
		shown("Type", func(s *corev1.Secret) any { return string(s.Type) }),
		shown("Data", func(s *corev1.Secret) any { return len(s.Data) }), age,
	},
	"Service": {
		shown("Type", func(s *corev1.Service) any { return string(s.Spec.Type) }),
		shown("Cluster-IP", func(s *corev1.Service) any {
			return orNone(strings.Join(s.Spec.ClusterIPs[:min(1, len(s.Spec.ClusterIPs))], ""))
		}),
		shown("External-IP", externalIP),
		shown("Port(s)", servicePorts),
		age,
		hidden("Selector", func(s *corev1.Service) any { return labels.FormatLabels(s.Spec.Selector) }),
	},
	"StatefulSet": append([]column{
		shown("Ready", func(s *appsv1.StatefulSet) any { return of(s.Status.ReadyReplicas, value(s.Spec.Replicas)) }), age,
	}, containers(func(s *appsv1.StatefulSet) (corev1.PodSpec, string) {
		return s.Spec.Template.Spec, ""
	})[:2]...),
}

// templateColumns are the wide columns of a kind with a pod template.
type templateColumns []column

// containers are the names and images of a template, and the text of a selector.
func containers[T store.Object](template func(T) (spec corev1.PodSpec, selector string)) templateColumns {
	join := func(obj T, text func(corev1.Container) string) string {
		spec, _ := template(obj)
		var texts []string
		for _, c := range spec.Containers {
			texts = append(texts, text(c))
		}
		return strings.Join(texts, ",")
	}
	return templateColumns{
		hidden("Containers", func(obj T) any { return join(obj, func(c corev1.Container) string { return c.Name }) }),
		hidden("Images", func(obj T) any { return join(obj, func(c corev1.Container) string { return c.Image }) }),
		hidden("Selector", func(obj T) any {
			_, selector := template(obj)
			return selector
		}),
	}
}

// shownAs are the columns under other names, in every table.
func (all templateColumns) shownAs(names ...string) []column {
	for i, name := range names {
		all[i].Name, all[i].Wide = name, false
	}
	return all
}

// subjects are the wide columns of a binding.
func subjects[T store.Object](of func(T) []rbacv1.Subject) []column {
	named := func(obj T, kind string) string {
		var names []string
		for _, s := range of(obj) {
			switch {
			case s.Kind != kind:
			case kind == rbacv1.ServiceAccountKind:
				names = append(names, s.Namespace+"/"+s.Name)
			default:
				names = append(names, s.Name)
			}
		}
		return strings.Join(names, ", ")
	}
	return []column{
		hidden("Users", func(obj T) any { return named(obj, rbacv1.UserKind) }),
		hidden("Groups", func(obj T) any { return named(obj, rbacv1.GroupKind) }),
		hidden("ServiceAccounts", func(obj T) any { return named(obj, rbacv1.ServiceAccountKind) }),
	}
}

const (
	none    = "<none>"
	unknown = "<unknown>"
	unset   = "<unset>"
)

func orNone(text string) string { return or(text, none) }

func orUnknown(text string) string { return or(text, unknown) }

func orUnset(text string) string { return or(text, unset) }

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// value is the value at p, or zero if p is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func of(n, all int32) string { return fmt.Sprintf("%d/%d", n, all) }

// title is a bool as a table of the API server has it.
func title(b *bool) string {
	switch {
	case b == nil:
		return unset
	case *b:
		return "True"
	}
	return "False"
}

// since is how long ago a time was.
func since(t metav1.Time) string {
	if t.IsZero() {
		return unknown
	}
	return duration.HumanDuration(time.Since(t.Time))
}
