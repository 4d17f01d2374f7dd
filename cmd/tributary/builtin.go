package main

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tributary-go/tributary/etcd"
	"github.com/tributary-go/tributary/server/watchcache"
)

// builtins are the resources that kube-apiserver serves without a definition, in the versions in
// which it stores them. The paths of their keys are in its DefaultStorageFactory.
func builtins() []resource {
	const namespaced, cluster = false, true
	var all []resource
	group := func(group, version string, resources ...resource) {
		for _, r := range resources {
			r.group, r.version = group, version
			all = append(all, r)
		}
	}
	is := func(plural, kind string, clusterScoped bool, add func(*site, resource) (running, error), shortNames ...string) resource {
		r := resource{plural: plural, kind: kind, clusterScoped: clusterScoped, add: add, shortNames: shortNames}
		if slices.Contains(inAll, plural) {
			r.categories = []string{"all"}
		}
		return r
	}
	under := func(path string, r resource) resource {
		r.path = path
		return r
	}
	group("", "v1",
		is("configmaps", "ConfigMap", namespaced, known, "cm"),
		under("services/endpoints", is("endpoints", "Endpoints", namespaced, known, "ep")),
		is("events", "Event", namespaced, events, "ev"),
		is("limitranges", "LimitRange", namespaced, known, "limits"),
		is("namespaces", "Namespace", cluster, known, "ns"),
		under("minions", is("nodes", "Node", cluster, known, "no")),
		is("persistentvolumeclaims", "PersistentVolumeClaim", namespaced, known, "pvc"),
		is("persistentvolumes", "PersistentVolume", cluster, known, "pv"),
		is("pods", "Pod", namespaced, pods, "po"),
		is("podtemplates", "PodTemplate", namespaced, known),
		under("controllers", is("replicationcontrollers", "ReplicationController", namespaced, known, "rc")),
		is("resourcequotas", "ResourceQuota", namespaced, known, "quota"),
		is("secrets", "Secret", namespaced, secrets),
		is("serviceaccounts", "ServiceAccount", namespaced, known, "sa"),
		under("services/specs", is("services", "Service", namespaced, known, "svc")),
	)
	group("admissionregistration.k8s.io", "v1",
		is("mutatingwebhookconfigurations", "MutatingWebhookConfiguration", cluster, known),
		is("validatingadmissionpolicies", "ValidatingAdmissionPolicy", cluster, known),
		is("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", cluster,
			known),
		is("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", cluster, known),
	)
	group("apiextensions.k8s.io", "v1",
		under(definitionsPath, is(definitionsName, "CustomResourceDefinition", cluster, definitions, "crd", "crds")))
	group("apiregistration.k8s.io", "v1",
		under("apiregistration.k8s.io/apiservices", is("apiservices", "APIService", cluster, documents)))
	group("apps", "v1",
		is("controllerrevisions", "ControllerRevision", namespaced, known),
		is("daemonsets", "DaemonSet", namespaced, known, "ds"),
		is("deployments", "Deployment", namespaced, known, "deploy"),
		is("replicasets", "ReplicaSet", namespaced, known, "rs"),
		is("statefulsets", "StatefulSet", namespaced, known, "sts"),
	)
	group("autoscaling", "v2",
		is("horizontalpodautoscalers", "HorizontalPodAutoscaler", namespaced, known, "hpa"))
	group("batch", "v1",
		is("cronjobs", "CronJob", namespaced, known, "cj"),
		is("jobs", "Job", namespaced, known),
	)
	group("certificates.k8s.io", "v1",
		is("certificatesigningrequests", "CertificateSigningRequest", cluster, known, "csr"))
	group("coordination.k8s.io", "v1", is("leases", "Lease", namespaced, known))
	group("discovery.k8s.io", "v1", is("endpointslices", "EndpointSlice", namespaced, known))
	group("flowcontrol.apiserver.k8s.io", "v1",
		is("flowschemas", "FlowSchema", cluster, known),
		is("prioritylevelconfigurations", "PriorityLevelConfiguration", cluster, known),
	)
	group("networking.k8s.io", "v1",
		is("ingressclasses", "IngressClass", cluster, known),
		under("ingress", is("ingresses", "Ingress", namespaced, known, "ing")),
		is("ipaddresses", "IPAddress", cluster, known, "ip"),
		is("networkpolicies", "NetworkPolicy", namespaced, known, "netpol"),
		is("servicecidrs", "ServiceCIDR", cluster, known),
	)
	group("node.k8s.io", "v1", is("runtimeclasses", "RuntimeClass", cluster, known))
	group("policy", "v1", is("poddisruptionbudgets", "PodDisruptionBudget", namespaced, known, "pdb"))
	group("rbac.authorization.k8s.io", "v1",
		is("clusterrolebindings", "ClusterRoleBinding", cluster, known),
		is("clusterroles", "ClusterRole", cluster, known),
		is("rolebindings", "RoleBinding", namespaced, known),
		is("roles", "Role", namespaced, known),
	)
	group("resource.k8s.io", "v1",
		is("deviceclasses", "DeviceClass", cluster, known),
		is("resourceclaims", "ResourceClaim", namespaced, known),
		is("resourceclaimtemplates", "ResourceClaimTemplate", namespaced, known),
		is("resourceslices", "ResourceSlice", cluster, known),
	)
	group("scheduling.k8s.io", "v1", is("priorityclasses", "PriorityClass", cluster, known, "pc"))
	group("storage.k8s.io", "v1",
		is("csidrivers", "CSIDriver", cluster, known),
		is("csinodes", "CSINode", cluster, known),
		is("csistoragecapacities", "CSIStorageCapacity", namespaced, known),
		is("storageclasses", "StorageClass", cluster, known, "sc"),
		is("volumeattachments", "VolumeAttachment", cluster, known),
		is("volumeattributesclasses", "VolumeAttributesClass", cluster, known, "vac"),
	)
	return all
}

// inAll are the resources that kubectl get all shows.
var inAll = []string{
	"pods", "replicationcontrollers", "services", "daemonsets", "deployments", "replicasets", "statefulsets",
	"horizontalpodautoscalers", "cronjobs", "jobs",
}

// builtin finds a built-in resource by its plural, with its group if that is not the core group.
func builtin(name string) (resource, bool) {
	all := builtins()
	plural, _, grouped := strings.Cut(name, ".")
	i := slices.IndexFunc(all, func(r resource) bool { return r.name() == name || !grouped && r.plural == plural })
	if i < 0 {
		return resource{}, false
	}
	return all[i], true
}

// known serves a kind that client-go has a Go type of, by names and ages.
func known(s *site, r resource) (running, error) { return addAny(s, r, r.typed, anyKind{}) }

// typed makes an empty object of client-go's type.
func (r resource) typed() object {
	obj, err := scheme.Scheme.New(schema.GroupVersionKind{Group: r.group, Version: r.version, Kind: r.kind})
	if err != nil {
		panic(err) // TestBuiltins makes one of each
	}
	return obj.(object)
}

// documents serves a kind without a Go type, by names and ages.
func documents(s *site, r resource) (running, error) { return addAny(s, r, newDocument, anyKind{}) }

func newDocument() object { return &unstructured.Unstructured{} }

func pods(s *site, r resource) (running, error) {
	return add(s, r, etcd.New[corev1.Pod](s.client, r.prefix(s.prefix)), watchcache.Pods())
}

// eventExpiry is kube-apiserver's --event-ttl.
const eventExpiry = time.Hour

// events expire, and can be selected by what they are about, as kubectl describe does.
func events(s *site, r resource) (running, error) {
	field := func(label string, value func(*corev1.Event) string) watchcache.Field[object] {
		return watchcache.Field[object]{Label: label, Value: func(obj object) string { return value(obj.(*corev1.Event)) }}
	}
	column := func(name string, value func(*corev1.Event) string) watchcache.Column[object] {
		return watchcache.Column[object]{Name: name, Value: func(obj object) any { return value(obj.(*corev1.Event)) }}
	}
	return addAny(s, r, r.typed, anyKind{
		Fields: []watchcache.Field[object]{
			field("involvedObject.kind", func(e *corev1.Event) string { return e.InvolvedObject.Kind }),
			field("involvedObject.namespace", func(e *corev1.Event) string { return e.InvolvedObject.Namespace }),
			field("involvedObject.name", func(e *corev1.Event) string { return e.InvolvedObject.Name }),
			field("involvedObject.uid", func(e *corev1.Event) string { return string(e.InvolvedObject.UID) }),
			field("reason", func(e *corev1.Event) string { return e.Reason }),
			field("type", func(e *corev1.Event) string { return e.Type }),
		},
		Columns: []watchcache.Column[object]{
			column("Type", func(e *corev1.Event) string { return e.Type }),
			column("Reason", func(e *corev1.Event) string { return e.Reason }),
			column("Object", func(e *corev1.Event) string {
				return strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
			}),
			column("Message", func(e *corev1.Event) string { return e.Message }),
		},
	}, etcd.WithExpiry(eventExpiry))
}

func secrets(s *site, r resource) (running, error) {
	return addAny(s, r, r.typed, anyKind{Fields: []watchcache.Field[object]{
		{Label: "type", Value: func(obj object) string { return string(obj.(*corev1.Secret).Type) }},
	}})
}
