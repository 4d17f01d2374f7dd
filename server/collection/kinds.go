package collection

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// The built-in kinds that differ from most, as the strategies of kube-apiserver 1.36 have it.
var (
	// labelNames have a name that is a DNS label.
	labelNames = sets.New("Namespace", "Service")
	// freeNames have a name that only has to fit into a path.
	freeNames = sets.New("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
	// withoutGeneration have a spec whose changes are not counted.
	withoutGeneration = sets.New("Namespace", "Node", "Service", "PersistentVolume", "PersistentVolumeClaim",
		"ResourceQuota", "LimitRange", "Lease", "LeaseCandidate", "CSIDriver", "CSINode", "VolumeAttachment",
		"HorizontalPodAutoscaler", "CertificateSigningRequest")
	// versionedUpdates refuse an update that names no resource version.
	versionedUpdates = sets.New("Lease", "LeaseCandidate", "PodDisruptionBudget", "RuntimeClass",
		"CSIDriver", "CSINode", "CSIStorageCapacity", "VolumeAttachment", "ClusterTrustBundle",
		"CustomResourceDefinition", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration")
)

// freeFinalizers are the kinds whose finalizers need no domain, like those of custom resources.
var freeFinalizers = sets.New("APIService", "CustomResourceDefinition")

// traits are what the rules of writes depend on.
type traits struct {
	custom       bool // a custom resource
	generation   bool // changes of the spec are counted
	needsVersion bool // of updates
	validName    validation.ValidateNameFunc

	freeFinalizers bool // they need no domain
}

func traitsOf[T store.Object](r watchcache.Resource[T]) traits {
	t := traits{generation: true}
	t.custom = r.Schema != nil || strings.Contains(r.Group, ".") && !strings.HasSuffix(r.Group, ".k8s.io")
	t.needsVersion = t.custom
	t.freeFinalizers = t.custom || freeFinalizers.Has(r.Kind)
	t.validName = validation.NameIsDNSSubdomain
	if t.custom {
		return t
	}
	t.generation = !withoutGeneration.Has(r.Kind)
	t.needsVersion = versionedUpdates.Has(r.Kind)
	switch {
	case labelNames.Has(r.Kind):
		t.validName = validation.NameIsDNSLabel
	case freeNames.Has(r.Kind):
		t.validName = pathSegment
	}
	return t
}

func pathSegment(name string, prefix bool) []string {
	if prefix {
		return path.IsValidPathSegmentPrefix(name)
	}
	return path.IsValidPathSegmentName(name)
}
