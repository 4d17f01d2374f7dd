package builtin

import (
	"reflect"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/internal/object"
	"github.com/tributary-go/tributary/store"
)

// anyResource describes a kind, whatever its Go type.
type anyResource = apiserver.Resource[store.Object]

// kinds are all of them but pods, by group. Each row names the traits that set a kind apart, as the
// strategies of kube-apiserver 1.36 have it.
func kinds() []anyResource {
	return []anyResource{
		row[*corev1.ConfigMap]("", "v1", "configmaps", short("cm")),
		//lint:ignore SA1019 deprecated, and served by kube-apiserver
		row[*corev1.Endpoints]("", "v1", "endpoints", short("ep")),
		row[*corev1.Event]("", "v1", "events", short("ev"), alsoIn(eventsV1), ownerless),
		row[*corev1.LimitRange]("", "v1", "limitranges", short("limits"), uncounted),
		row[*corev1.Namespace]("", "v1", "namespaces", cluster, short("ns"), labelNames, uncounted, with(finalize), returned),
		row[*corev1.Node]("", "v1", "nodes", cluster, short("no"), uncounted, createdWithStatus),
		row[*corev1.PersistentVolumeClaim]("", "v1", "persistentvolumeclaims", short("pvc"), uncounted, returned),
		row[*corev1.PersistentVolume]("", "v1", "persistentvolumes", cluster, short("pv"), uncounted, returned),
		row[*corev1.PodTemplate]("", "v1", "podtemplates", returned),
		row[*corev1.ReplicationController]("", "v1", "replicationcontrollers", short("rc"), inAll, scaled, orphaned),
		row[*corev1.ResourceQuota]("", "v1", "resourcequotas", short("quota"), uncounted, returned),
		row[*corev1.Secret]("", "v1", "secrets"),
		row[*corev1.ServiceAccount]("", "v1", "serviceaccounts", short("sa"), with(token), returned),
		row[*corev1.Service]("", "v1", "services", short("svc"), inAll, labelNames, uncounted, returned),
		row[*admissionregistrationv1.MutatingWebhookConfiguration]("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", cluster, versioned, extension),
		row[*admissionregistrationv1.ValidatingAdmissionPolicy]("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", cluster, versioned, extension),
		row[*admissionregistrationv1.ValidatingAdmissionPolicyBinding]("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", cluster, versioned, extension),
		row[*admissionregistrationv1.ValidatingWebhookConfiguration]("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", cluster, versioned, extension),
		row[*appsv1.ControllerRevision]("apps", "v1", "controllerrevisions"),
		row[*appsv1.DaemonSet]("apps", "v1", "daemonsets", short("ds"), inAll),
		row[*appsv1.Deployment]("apps", "v1", "deployments", short("deploy"), inAll, scaled),
		row[*appsv1.ReplicaSet]("apps", "v1", "replicasets", short("rs"), inAll, scaled),
		row[*appsv1.StatefulSet]("apps", "v1", "statefulsets", short("sts"), inAll, scaled),
		row[*autoscalingv2.HorizontalPodAutoscaler]("autoscaling", "v2", "horizontalpodautoscalers", short("hpa"), inAll, uncounted, alsoIn(autoscalingV1)),
		row[*batchv1.CronJob]("batch", "v1", "cronjobs", short("cj"), inAll),
		row[*batchv1.Job]("batch", "v1", "jobs", inAll, orphaned),
		row[*certificatesv1.CertificateSigningRequest]("certificates.k8s.io", "v1", "certificatesigningrequests", cluster, short("csr"), uncounted, with(approval)),
		row[*coordinationv1.Lease]("coordination.k8s.io", "v1", "leases", uncounted, versioned),
		row[*discoveryv1.EndpointSlice]("discovery.k8s.io", "v1", "endpointslices"),
		row[*flowcontrolv1.FlowSchema]("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", cluster),
		row[*flowcontrolv1.PriorityLevelConfiguration]("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations", cluster),
		row[*networkingv1.IngressClass]("networking.k8s.io", "v1", "ingressclasses", cluster),
		row[*networkingv1.Ingress]("networking.k8s.io", "v1", "ingresses", short("ing")),
		row[*networkingv1.IPAddress]("networking.k8s.io", "v1", "ipaddresses", cluster, short("ip")),
		row[*networkingv1.NetworkPolicy]("networking.k8s.io", "v1", "networkpolicies", short("netpol")),
		row[*networkingv1.ServiceCIDR]("networking.k8s.io", "v1", "servicecidrs", cluster),
		row[*nodev1.RuntimeClass]("node.k8s.io", "v1", "runtimeclasses", cluster, versioned),
		row[*policyv1.PodDisruptionBudget]("policy", "v1", "poddisruptionbudgets", short("pdb"), versioned),
		row[*rbacv1.ClusterRoleBinding]("rbac.authorization.k8s.io", "v1", "clusterrolebindings", cluster, pathNames),
		row[*rbacv1.ClusterRole]("rbac.authorization.k8s.io", "v1", "clusterroles", cluster, pathNames),
		row[*rbacv1.RoleBinding]("rbac.authorization.k8s.io", "v1", "rolebindings", pathNames),
		row[*rbacv1.Role]("rbac.authorization.k8s.io", "v1", "roles", pathNames),
		row[*resourcev1.DeviceClass]("resource.k8s.io", "v1", "deviceclasses", cluster, returned),
		row[*resourcev1.ResourceClaim]("resource.k8s.io", "v1", "resourceclaims", returned),
		row[*resourcev1.ResourceClaimTemplate]("resource.k8s.io", "v1", "resourceclaimtemplates", returned),
		row[*resourcev1.ResourceSlice]("resource.k8s.io", "v1", "resourceslices", cluster, returned),
		row[*schedulingv1.PriorityClass]("scheduling.k8s.io", "v1", "priorityclasses", cluster, short("pc")),
		row[*storagev1.CSIDriver]("storage.k8s.io", "v1", "csidrivers", cluster, uncounted, versioned, returned),
		row[*storagev1.CSINode]("storage.k8s.io", "v1", "csinodes", cluster, uncounted, versioned, returned),
		row[*storagev1.CSIStorageCapacity]("storage.k8s.io", "v1", "csistoragecapacities", versioned),
		row[*storagev1.StorageClass]("storage.k8s.io", "v1", "storageclasses", cluster, short("sc"), returned),
		row[*storagev1.VolumeAttachment]("storage.k8s.io", "v1", "volumeattachments", cluster, uncounted, versioned, returned),
		row[*storagev1.VolumeAttributesClass]("storage.k8s.io", "v1", "volumeattributesclasses", cluster, short("vac"), returned),
	}
}

// row describes the kind of a Go type. The maps of this package have the rest, by kind.
func row[T store.Object](group, version, plural string, traits ...func(*anyResource)) (r anyResource) {
	name := reflect.TypeFor[T]().Elem().Name()
	r.Kind.Group, r.Kind.Version, r.Kind.Plural, r.Kind.Kind = group, version, plural, name
	r.Kind.New = func() store.Object { return object.New[T]() }
	r.Kind.Fields = fields[name]
	r.Rules = rules[name]
	r.Rules.BuiltIn, r.Rules.UnconditionalUpdate, r.Rules.Generation = true, true, collection.CountSpec
	r.View.Columns = columns()[name]
	for _, set := range traits {
		set(&r)
	}
	return r
}

// cluster: objects have no namespace. A selector may ask for one all the same, as on
// kube-apiserver, but for kinds with field labels of their own.
func cluster(r *anyResource) {
	if r.Kind.ClusterScoped = true; len(r.Kind.Fields) == 0 {
		r.Kind.Fields = []fieldLabel{selectable("metadata.namespace", store.Object.GetNamespace)}
	}
}

// short are the short names.
func short(names ...string) func(*anyResource) {
	return func(r *anyResource) { r.View.ShortNames = names }
}

// inAll puts a resource into the category all, and extension into that of what extends the API.
func inAll(r *anyResource)     { r.View.Categories = []string{"all"} }
func extension(r *anyResource) { r.View.Categories = []string{"api-extensions"} }

// scaled: objects have replicas.
func scaled(r *anyResource) {
	r.Rules.Scale = &collection.Scale{
		SpecReplicas: []string{"spec", "replicas"}, StatusReplicas: []string{"status", "replicas"},
		Selector: []string{"spec", "selector"},
	}
}

// labelNames: a name is a DNS label.
func labelNames(r *anyResource) { r.Rules.ValidName = validation.NameIsDNSLabel }

// pathNames: a name only has to fit into a path.
func pathNames(r *anyResource) { r.Rules.ValidName = path.ValidatePathSegmentName }

// uncounted: changes of the spec are not counted.
func uncounted(r *anyResource) { r.Rules.Generation = collection.CountNothing }

// versioned: an update must name a resource version.
func versioned(r *anyResource) { r.Rules.UnconditionalUpdate = false }

// createdWithStatus: a new object keeps its status, as that of a Node from its kubelet.
func createdWithStatus(r *anyResource) { r.Rules.CreateStatus = true }

// returned: a deletion answers with the object.
func returned(r *anyResource) { r.Rules.ReturnDeleted = true }

// orphaned: a deletion without a policy keeps the dependents; ownerless: there are none.
func orphaned(r *anyResource)  { r.Rules.Dependents = collection.OrphanDependents }
func ownerless(r *anyResource) { r.Rules.Dependents = collection.IgnoreDependents }

// alsoIn adds a version.
func alsoIn(v collection.Version) func(*anyResource) {
	return func(r *anyResource) {
		v.Kind.Kind, v.Kind.Plural, v.Kind.ClusterScoped = r.Kind.Kind, r.Kind.Plural, r.Kind.ClusterScoped
		r.Rules.Versions = append(r.Rules.Versions, v)
	}
}

// with adds a subresource.
func with(s apiserver.Subresource) func(*anyResource) {
	return func(r *anyResource) { r.View.Subresources = append(r.View.Subresources, s) }
}
