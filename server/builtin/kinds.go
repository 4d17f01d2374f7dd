package builtin

import "github.com/tributary-go/tributary/server/watchcache"

// kind is one built-in kind.
type kind struct {
	group, version, plural, kind string

	scope scope
	short []string
}

type scope bool

const (
	namespaced scope = false
	cluster    scope = true
)

// kinds are all of them but pods, by group.
var kinds = []kind{
	{"", "v1", "configmaps", "ConfigMap", namespaced, []string{"cm"}},
	{"", "v1", "endpoints", "Endpoints", namespaced, []string{"ep"}},
	{"", "v1", "events", "Event", namespaced, []string{"ev"}},
	{"", "v1", "limitranges", "LimitRange", namespaced, []string{"limits"}},
	{"", "v1", "namespaces", "Namespace", cluster, []string{"ns"}},
	{"", "v1", "nodes", "Node", cluster, []string{"no"}},
	{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced, []string{"pvc"}},
	{"", "v1", "persistentvolumes", "PersistentVolume", cluster, []string{"pv"}},
	{"", "v1", "podtemplates", "PodTemplate", namespaced, nil},
	{"", "v1", "replicationcontrollers", "ReplicationController", namespaced, []string{"rc"}},
	{"", "v1", "resourcequotas", "ResourceQuota", namespaced, []string{"quota"}},
	{"", "v1", "secrets", "Secret", namespaced, nil},
	{"", "v1", "serviceaccounts", "ServiceAccount", namespaced, []string{"sa"}},
	{"", "v1", "services", "Service", namespaced, []string{"svc"}},
	{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", cluster, nil},
	{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", cluster, nil},
	{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", cluster, nil},
	{"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", cluster, nil},
	{"apps", "v1", "controllerrevisions", "ControllerRevision", namespaced, nil},
	{"apps", "v1", "daemonsets", "DaemonSet", namespaced, []string{"ds"}},
	{"apps", "v1", "deployments", "Deployment", namespaced, []string{"deploy"}},
	{"apps", "v1", "replicasets", "ReplicaSet", namespaced, []string{"rs"}},
	{"apps", "v1", "statefulsets", "StatefulSet", namespaced, []string{"sts"}},
	{"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", namespaced, []string{"hpa"}},
	{"batch", "v1", "cronjobs", "CronJob", namespaced, []string{"cj"}},
	{"batch", "v1", "jobs", "Job", namespaced, nil},
	{"certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", cluster, []string{"csr"}},
	{"coordination.k8s.io", "v1", "leases", "Lease", namespaced, nil},
	{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", namespaced, nil},
	{"flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", cluster, nil},
	{"flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", cluster, nil},
	{"networking.k8s.io", "v1", "ingressclasses", "IngressClass", cluster, nil},
	{"networking.k8s.io", "v1", "ingresses", "Ingress", namespaced, []string{"ing"}},
	{"networking.k8s.io", "v1", "ipaddresses", "IPAddress", cluster, []string{"ip"}},
	{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", namespaced, []string{"netpol"}},
	{"networking.k8s.io", "v1", "servicecidrs", "ServiceCIDR", cluster, nil},
	{"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", cluster, nil},
	{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced, []string{"pdb"}},
	{"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", cluster, nil},
	{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", cluster, nil},
	{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", namespaced, nil},
	{"rbac.authorization.k8s.io", "v1", "roles", "Role", namespaced, nil},
	{"resource.k8s.io", "v1", "deviceclasses", "DeviceClass", cluster, nil},
	{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", namespaced, nil},
	{"resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", namespaced, nil},
	{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", cluster, nil},
	{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", cluster, []string{"pc"}},
	{"storage.k8s.io", "v1", "csidrivers", "CSIDriver", cluster, nil},
	{"storage.k8s.io", "v1", "csinodes", "CSINode", cluster, nil},
	{"storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", namespaced, nil},
	{"storage.k8s.io", "v1", "storageclasses", "StorageClass", cluster, []string{"sc"}},
	{"storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", cluster, nil},
	{"storage.k8s.io", "v1", "volumeattributesclasses", "VolumeAttributesClass", cluster, []string{"vac"}},
}

// inAll are the resources of the category all.
var inAll = []string{
	"replicationcontrollers", "services", "daemonsets", "deployments", "replicasets", "statefulsets",
	"horizontalpodautoscalers", "cronjobs", "jobs",
}

// scales are the kinds with replicas.
var scales = map[string]*watchcache.Scale{
	"Deployment": replicas, "ReplicaSet": replicas, "StatefulSet": replicas, "ReplicationController": replicas,
}

var replicas = &watchcache.Scale{
	SpecReplicas: []string{"spec", "replicas"}, StatusReplicas: []string{"status", "replicas"},
	Selector: []string{"spec", "selector"},
}
