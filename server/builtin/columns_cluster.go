package builtin

import (
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/store"
)

var createdAt = apiserver.Column[store.Object]{
	Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
	Value: func(obj store.Object) any { return obj.GetCreationTimestamp().UTC().Format(time.RFC3339) },
}

// clusterColumns are the columns of the kinds that people read less often than those of columns.
var clusterColumns = map[string][]column{
	"LimitRange": {createdAt}, "ClusterRole": {createdAt}, "Role": {createdAt}, "CSIStorageCapacity": {createdAt},
	"Endpoints": {
		//lint:ignore SA1019 deprecated, and served by kube-apiserver
		shown("Endpoints", func(e *corev1.Endpoints) string { return endpointAddresses(e.Subsets) }), age,
	},
	"EndpointSlice": {
		shown("AddressType", func(s *discoveryv1.EndpointSlice) string { return string(s.AddressType) }),
		shown("Ports", func(s *discoveryv1.EndpointSlice) string { return slicePorts(s.Ports) }),
		shown("Endpoints", func(s *discoveryv1.EndpointSlice) string {
			var all []string
			for _, e := range s.Endpoints {
				all = append(all, e.Addresses...)
			}
			return orUnset(first(all, 3, ","))
		}),
		age,
	},
	"PersistentVolume": {
		shown("Capacity", func(v *corev1.PersistentVolume) string { return v.Spec.Capacity.Storage().String() }),
		shown("Access Modes", func(v *corev1.PersistentVolume) string { return accessModes(v.Spec.AccessModes) }),
		shown("Reclaim Policy", func(v *corev1.PersistentVolume) string { return string(v.Spec.PersistentVolumeReclaimPolicy) }),
		shown("Status", func(v *corev1.PersistentVolume) string {
			if v.DeletionTimestamp != nil {
				return "Terminating"
			}
			return string(v.Status.Phase)
		}),
		shown("Claim", func(v *corev1.PersistentVolume) string {
			if v.Spec.ClaimRef == nil {
				return ""
			}
			return v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name
		}),
		shown("StorageClass", func(v *corev1.PersistentVolume) string {
			return or(v.Annotations[corev1.BetaStorageClassAnnotation], v.Spec.StorageClassName)
		}),
		shown("VolumeAttributesClass", func(v *corev1.PersistentVolume) string { return orUnset(value(v.Spec.VolumeAttributesClassName)) }),
		shown("Reason", func(v *corev1.PersistentVolume) string { return v.Status.Reason }),
		age,
		hidden("VolumeMode", func(v *corev1.PersistentVolume) string { return orUnset(string(value(v.Spec.VolumeMode))) }),
	},
	"PodTemplate": containers(func(p *corev1.PodTemplate) (corev1.PodSpec, string) {
		return p.Template.Spec, labels.FormatLabels(p.Template.Labels)
	}).shownAs("Containers", "Images", "Pod Labels"),
	"ReplicationController": append([]column{
		shown("Desired", func(r *corev1.ReplicationController) int32 { return value(r.Spec.Replicas) }),
		shown("Current", func(r *corev1.ReplicationController) int32 { return r.Status.Replicas }),
		shown("Ready", func(r *corev1.ReplicationController) int32 { return r.Status.ReadyReplicas }),
		age,
	}, containers(func(r *corev1.ReplicationController) (corev1.PodSpec, string) {
		return value(r.Spec.Template).Spec, labels.FormatLabels(r.Spec.Selector)
	})...),
	"ResourceQuota": {
		shown("Request", func(q *corev1.ResourceQuota) string { return quotaUse(q, false) }),
		shown("Limit", func(q *corev1.ResourceQuota) string { return quotaUse(q, true) }),
		age,
	},
	"MutatingWebhookConfiguration": {
		shown("Webhooks", func(c *admissionregistrationv1.MutatingWebhookConfiguration) int { return len(c.Webhooks) }), age,
	},
	"ValidatingWebhookConfiguration": {
		shown("Webhooks", func(c *admissionregistrationv1.ValidatingWebhookConfiguration) int { return len(c.Webhooks) }), age,
	},
	"ValidatingAdmissionPolicy": {
		shown("Validations", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) int { return len(p.Spec.Validations) }),
		shown("ParamKind", func(p *admissionregistrationv1.ValidatingAdmissionPolicy) string {
			if p.Spec.ParamKind == nil {
				return unset
			}
			return p.Spec.ParamKind.APIVersion + "/" + p.Spec.ParamKind.Kind
		}),
		age,
	},
	"ValidatingAdmissionPolicyBinding": {
		shown("PolicyName", func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) string { return b.Spec.PolicyName }),
		shown("ParamRef", func(b *admissionregistrationv1.ValidatingAdmissionPolicyBinding) string {
			switch ref := b.Spec.ParamRef; {
			case ref == nil, ref.Name == "" && ref.Selector == nil:
				return unset
			case ref.Name != "":
				return or(ref.Namespace, "*") + "/" + ref.Name
			default:
				return ref.Selector.String()
			}
		}),
		age,
	},
	"ControllerRevision": {
		shown("Controller", func(r *appsv1.ControllerRevision) string {
			controller := metav1.GetControllerOf(r)
			if controller == nil {
				return none
			}
			kind := schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind()
			return strings.ToLower(kind.String()) + "/" + controller.Name
		}),
		shown("Revision", func(r *appsv1.ControllerRevision) any { return r.Revision }),
		age,
	},
	"HorizontalPodAutoscaler": {
		shown("Reference", func(h *autoscalingv2.HorizontalPodAutoscaler) string {
			return h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name
		}),
		shown("Targets", func(h *autoscalingv2.HorizontalPodAutoscaler) string {
			return scalingTargets(h.Spec.Metrics, h.Status.CurrentMetrics)
		}),
		shown("MinPods", func(h *autoscalingv2.HorizontalPodAutoscaler) string {
			if h.Spec.MinReplicas == nil {
				return unset
			}
			return fmt.Sprint(*h.Spec.MinReplicas)
		}),
		shown("MaxPods", func(h *autoscalingv2.HorizontalPodAutoscaler) any { return int64(h.Spec.MaxReplicas) }),
		shown("Replicas", func(h *autoscalingv2.HorizontalPodAutoscaler) any { return int64(h.Status.CurrentReplicas) }),
		age,
	},
	"CertificateSigningRequest": {
		age,
		shown("SignerName", func(c *certificatesv1.CertificateSigningRequest) string { return orNone(c.Spec.SignerName) }),
		shown("Requestor", func(c *certificatesv1.CertificateSigningRequest) string { return c.Spec.Username }),
		shown("RequestedDuration", func(c *certificatesv1.CertificateSigningRequest) string {
			if c.Spec.ExpirationSeconds == nil {
				return none
			}
			return duration.HumanDuration(time.Duration(*c.Spec.ExpirationSeconds) * time.Second)
		}),
		shown("Condition", certificateState),
	},
	"FlowSchema": {
		shown("PriorityLevel", func(f *flowcontrolv1.FlowSchema) string { return f.Spec.PriorityLevelConfiguration.Name }),
		shown("MatchingPrecedence", func(f *flowcontrolv1.FlowSchema) any { return int64(f.Spec.MatchingPrecedence) }),
		shown("DistinguisherMethod", func(f *flowcontrolv1.FlowSchema) string {
			if f.Spec.DistinguisherMethod == nil {
				return none
			}
			return string(f.Spec.DistinguisherMethod.Type)
		}),
		age,
		shown("MissingPL", func(f *flowcontrolv1.FlowSchema) string {
			for _, c := range f.Status.Conditions {
				if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
					return string(c.Status)
				}
			}
			return "?"
		}),
	},
	"PriorityLevelConfiguration": {
		shown("Type", func(p *flowcontrolv1.PriorityLevelConfiguration) string { return string(p.Spec.Type) }),
		shown("NominalConcurrencyShares", func(p *flowcontrolv1.PriorityLevelConfiguration) any {
			if p.Spec.Limited == nil {
				return none
			}
			return int64(value(p.Spec.Limited.NominalConcurrencyShares))
		}),
		queuing("Queues", func(q *flowcontrolv1.QueuingConfiguration) int32 { return q.Queues }),
		queuing("HandSize", func(q *flowcontrolv1.QueuingConfiguration) int32 { return q.HandSize }),
		queuing("QueueLengthLimit", func(q *flowcontrolv1.QueuingConfiguration) int32 { return q.QueueLengthLimit }),
		age,
	},
	"IngressClass": {
		named(func(c *networkingv1.IngressClass) bool {
			return c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
		}),
		shown("Controller", func(c *networkingv1.IngressClass) string { return c.Spec.Controller }),
		shown("Parameters", func(c *networkingv1.IngressClass) string {
			p := c.Spec.Parameters
			if p == nil {
				return none
			}
			if p.APIGroup != nil {
				return p.Kind + "." + *p.APIGroup + "/" + p.Name
			}
			return p.Kind + "/" + p.Name
		}),
		age,
	},
	"IPAddress": {
		shown("ParentRef", func(a *networkingv1.IPAddress) string {
			parent := a.Spec.ParentRef
			if parent == nil {
				return none
			}
			text := strings.ToLower(schema.GroupResource{Group: parent.Group, Resource: parent.Resource}.String())
			if parent.Namespace != "" {
				text += "/" + parent.Namespace
			}
			return text + "/" + parent.Name
		}),
	},
	"ServiceCIDR": {
		shown("CIDRs", func(c *networkingv1.ServiceCIDR) string { return strings.Join(c.Spec.CIDRs, ",") }), age,
	},
	"RuntimeClass": {shown("Handler", func(c *nodev1.RuntimeClass) string { return c.Handler }), age},
	"ResourceClaim": {
		shown("State", func(c *resourcev1.ResourceClaim) string {
			var states []string
			if c.DeletionTimestamp != nil {
				states = append(states, "deleted")
			} else if c.Status.Allocation == nil {
				states = append(states, "pending")
			}
			if c.Status.Allocation != nil {
				states = append(states, "allocated")
				if len(c.Status.ReservedFor) > 0 {
					states = append(states, "reserved")
				}
			}
			return strings.Join(states, ",")
		}),
		age,
	},
	"ResourceSlice": {
		shown("Node", func(s *resourcev1.ResourceSlice) string { return value(s.Spec.NodeName) }),
		shown("Driver", func(s *resourcev1.ResourceSlice) string { return s.Spec.Driver }),
		shown("Pool", func(s *resourcev1.ResourceSlice) string { return s.Spec.Pool.Name }),
		age,
	},
	"PriorityClass": {
		shown("Value", func(c *schedulingv1.PriorityClass) int32 { return c.Value }),
		shown("Global-Default", func(c *schedulingv1.PriorityClass) bool { return c.GlobalDefault }),
		age,
		shown("PreemptionPolicy", func(c *schedulingv1.PriorityClass) string { return string(value(c.PreemptionPolicy)) }),
	},
	"CSIDriver": {
		shown("AttachRequired", func(d *storagev1.CSIDriver) bool { return d.Spec.AttachRequired == nil || *d.Spec.AttachRequired }),
		shown("PodInfoOnMount", func(d *storagev1.CSIDriver) bool { return value(d.Spec.PodInfoOnMount) }),
		shown("StorageCapacity", func(d *storagev1.CSIDriver) bool { return value(d.Spec.StorageCapacity) }),
		shown("TokenRequests", func(d *storagev1.CSIDriver) string {
			if d.Spec.TokenRequests == nil {
				return unset
			}
			var audiences []string
			for _, t := range d.Spec.TokenRequests {
				audiences = append(audiences, t.Audience)
			}
			return strings.Join(audiences, ",")
		}),
		shown("RequiresRepublish", func(d *storagev1.CSIDriver) bool { return value(d.Spec.RequiresRepublish) }),
		shown("Modes", func(d *storagev1.CSIDriver) string {
			var modes []string
			for _, mode := range d.Spec.VolumeLifecycleModes {
				modes = append(modes, string(mode))
			}
			return orNone(strings.Join(modes, ","))
		}),
		age,
	},
	"CSINode": {shown("Drivers", func(n *storagev1.CSINode) int { return len(n.Spec.Drivers) }), age},
	"StorageClass": {
		named(func(c *storagev1.StorageClass) bool {
			return c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
				c.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
		}),
		shown("Provisioner", func(c *storagev1.StorageClass) string { return c.Provisioner }),
		shown("ReclaimPolicy", func(c *storagev1.StorageClass) string {
			return or(string(value(c.ReclaimPolicy)), string(corev1.PersistentVolumeReclaimDelete))
		}),
		shown("VolumeBindingMode", func(c *storagev1.StorageClass) string {
			return or(string(value(c.VolumeBindingMode)), string(storagev1.VolumeBindingImmediate))
		}),
		shown("AllowVolumeExpansion", func(c *storagev1.StorageClass) any { return value(c.AllowVolumeExpansion) }),
		age,
	},
	"VolumeAttachment": {
		asName(shown("Attacher", func(a *storagev1.VolumeAttachment) string { return a.Spec.Attacher })),
		shown("PV", func(a *storagev1.VolumeAttachment) string { return value(a.Spec.Source.PersistentVolumeName) }),
		shown("Node", func(a *storagev1.VolumeAttachment) string { return a.Spec.NodeName }),
		shown("Attached", func(a *storagev1.VolumeAttachment) bool { return a.Status.Attached }),
		age,
	},
	"VolumeAttributesClass": {
		shown("DriverName", func(c *storagev1.VolumeAttributesClass) string { return c.DriverName }), age,
	},
}

// asName says that the cells are names.
func asName(c column) column {
	c.Format = "name"
	return c
}

// named is the name of an object that may be the default of its kind.
func named[T store.Object](isDefault func(T) bool) column {
	c := asName(shown("Name", func(obj T) string {
		if isDefault(obj) {
			return obj.GetName() + " (default)"
		}
		return obj.GetName()
	}))
	c.Description = metav1.ObjectMeta{}.SwaggerDoc()["name"]
	return c
}

// queuing is a column of the queues of a priority level.
func queuing(name string, of func(*flowcontrolv1.QueuingConfiguration) int32) column {
	return shown(name, func(p *flowcontrolv1.PriorityLevelConfiguration) any {
		if p.Spec.Limited == nil || p.Spec.Limited.LimitResponse.Queuing == nil {
			return none
		}
		return int64(of(p.Spec.Limited.LimitResponse.Queuing))
	})
}
