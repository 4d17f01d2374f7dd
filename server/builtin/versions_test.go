package builtin_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	autoscalingac "k8s.io/client-go/applyconfigurations/autoscaling/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	"k8s.io/utils/ptr"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// TestVersionsAreConverted: each version of an object has all fields of the other.
func TestVersionsAreConverted(t *testing.T) {
	quantity := resource.MustParse("3")
	rich := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"mine": "kept"}},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "front", APIVersion: "apps/v1"},
			MinReplicas:    ptr.To[int32](2), MaxReplicas: 5,
			Metrics: []autoscalingv2.MetricSpec{
				{Type: "Object", Object: &autoscalingv2.ObjectMetricSource{
					DescribedObject: autoscalingv2.CrossVersionObjectReference{Kind: "Service", Name: "s"},
					Target:          autoscalingv2.MetricTarget{Type: "Value", Value: &quantity}, Metric: autoscalingv2.MetricIdentifier{Name: "hits"},
				}},
				{Type: "Object", Object: &autoscalingv2.ObjectMetricSource{
					Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: &quantity}, Metric: autoscalingv2.MetricIdentifier{Name: "hits"},
				}},
				{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{
					Metric: autoscalingv2.MetricIdentifier{Name: "p", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}},
					Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: &quantity},
				}},
				{Type: "ContainerResource", ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
					Name: "cpu", Container: "c", Target: autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: ptr.To[int32](7)},
				}},
				{Type: "External", External: &autoscalingv2.ExternalMetricSource{
					Metric: autoscalingv2.MetricIdentifier{Name: "e"}, Target: autoscalingv2.MetricTarget{Type: "Value", Value: &quantity},
				}},
				{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{
					Name: "memory", Target: autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: &quantity},
				}},
				{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{
					Name: "cpu", Target: autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: ptr.To[int32](70)},
				}},
			},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{
				StabilizationWindowSeconds: ptr.To[int32](9), SelectPolicy: ptr.To(autoscalingv2.MinChangePolicySelect),
				Policies: []autoscalingv2.HPAScalingPolicy{{Type: "Pods", Value: 1, PeriodSeconds: 2}},
			}},
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			CurrentReplicas: 3, DesiredReplicas: 4,
			CurrentMetrics: []autoscalingv2.MetricStatus{
				{Type: "Object", Object: &autoscalingv2.ObjectMetricStatus{
					Metric: autoscalingv2.MetricIdentifier{Name: "hits"}, Current: autoscalingv2.MetricValueStatus{Value: &quantity},
				}},
				{Type: "Pods", Pods: &autoscalingv2.PodsMetricStatus{
					Metric: autoscalingv2.MetricIdentifier{Name: "p"}, Current: autoscalingv2.MetricValueStatus{AverageValue: &quantity},
				}},
				{Type: "ContainerResource", ContainerResource: &autoscalingv2.ContainerResourceMetricStatus{
					Name: "cpu", Container: "c", Current: autoscalingv2.MetricValueStatus{AverageValue: &quantity},
				}},
				{Type: "External", External: &autoscalingv2.ExternalMetricStatus{
					Metric: autoscalingv2.MetricIdentifier{Name: "e"}, Current: autoscalingv2.MetricValueStatus{Value: &quantity, AverageValue: &quantity},
				}},
				{Type: "Resource", Resource: &autoscalingv2.ResourceMetricStatus{
					Name: "cpu", Current: autoscalingv2.MetricValueStatus{AverageValue: &quantity, AverageUtilization: ptr.To[int32](5)},
				}},
			},
			Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: "AbleToScale", Status: "True", Reason: "R", Message: "m"}},
		},
	}
	version := builtin.Of[*autoscalingv2.HorizontalPodAutoscaler]().Rules.Versions[0]
	old := version.To(rich).(*autoscalingv1.HorizontalPodAutoscaler)
	require.EqualValues(t, 70, *old.Spec.TargetCPUUtilizationPercentage)
	require.EqualValues(t, 5, *old.Status.CurrentCPUUtilizationPercentage)
	require.Len(t, old.Annotations, 5)
	require.Contains(t, old.Annotations["autoscaling.alpha.kubernetes.io/behavior"], `"StabilizationWindowSeconds":9`)
	require.Equal(t, map[string]string{"mine": "kept"}, rich.Annotations, "a stored object is shared")
	require.Equal(t, rich, version.From(old))

	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "p"}, Reason: "R",
		Message: "m", Source: corev1.EventSource{Component: "c", Host: "h"}, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(),
		Count: 2, Type: "Normal", EventTime: metav1.NowMicro(), Series: &corev1.EventSeries{Count: 3}, Action: "A",
		Related: &corev1.ObjectReference{Name: "q"}, ReportingController: "rc", ReportingInstance: "ri",
	}
	version = builtin.Of[*corev1.Event]().Rules.Versions[0]
	require.Equal(t, "m", version.To(event).(*eventsv1.Event).Note)
	require.Equal(t, event, version.From(version.To(event)))
}

// TestTwoVersionsOfOneObject reads and writes objects in both versions.
func TestTwoVersionsOfOneObject(t *testing.T) {
	client := newClient(t)
	ctx := t.Context()
	one, two := client.AutoscalingV1().HorizontalPodAutoscalers("ns"), client.AutoscalingV2().HorizontalPodAutoscalers("ns")
	seen, err := one.Watch(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	defer seen.Stop()
	created, err := one.Create(ctx, &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       autoscalingv1.HorizontalPodAutoscalerSpec{MaxReplicas: 3, TargetCPUUtilizationPercentage: ptr.To[int32](50)},
	}, metav1.CreateOptions{FieldManager: "creator"})
	require.NoError(t, err)
	require.EqualValues(t, 1, *created.Spec.MinReplicas, "a default of the stored version")
	require.Equal(t, "autoscaling/v1", created.ManagedFields[0].APIVersion)
	stored, err := two.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 50, *stored.Spec.Metrics[0].Resource.Target.AverageUtilization)
	require.Equal(t, created.ResourceVersion, stored.ResourceVersion)
	require.Equal(t, created.UID, stored.UID)

	patched, err := one.Patch(ctx, "a", types.StrategicMergePatchType, []byte(`{"spec":{"targetCPUUtilizationPercentage":60}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 60, *patched.Spec.TargetCPUUtilizationPercentage)
	next := patched.DeepCopy()
	next.Spec.MaxReplicas = 4
	_, err = one.Update(ctx, next, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = one.Update(ctx, next, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	dry, err := one.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"maxReplicas":9}}`), metav1.PatchOptions{DryRun: []string{"All"}})
	require.NoError(t, err)
	require.EqualValues(t, 9, dry.Spec.MaxReplicas)
	stored, err = two.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 4, stored.Spec.MaxReplicas)

	stored.Status.CurrentReplicas = 2
	stored.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: "AbleToScale", Status: "True"}}
	_, err = two.UpdateStatus(ctx, stored, metav1.UpdateOptions{})
	require.NoError(t, err)
	bare, err := one.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Contains(t, bare.Annotations, "autoscaling.alpha.kubernetes.io/conditions")
	bare.Annotations = nil
	_, err = one.Update(ctx, bare, metav1.UpdateOptions{})
	require.NoError(t, err)
	stored, err = two.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Len(t, stored.Status.Conditions, 1, "an update keeps the status, wherever a version has it")
	listed, err := one.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 2, listed.Items[0].Status.CurrentReplicas)
	require.EqualValues(t, 60, *listed.Items[0].Spec.TargetCPUUtilizationPercentage)

	require.NoError(t, one.Delete(ctx, "a", metav1.DeleteOptions{}))
	_, err = two.Get(ctx, "a", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	var last watch.Event
	for range 5 {
		last = <-seen.ResultChan()
		require.IsType(t, &autoscalingv1.HorizontalPodAutoscaler{}, last.Object)
	}
	require.Equal(t, watch.Deleted, last.Type)
}

// TestOwnersInTwoVersions: fields that one manager owns in one version are in conflict with those
// of another manager in the other.
func TestOwnersInTwoVersions(t *testing.T) {
	client := newClient(t)
	ctx := t.Context()
	one, two := client.AutoscalingV1().HorizontalPodAutoscalers("ns"), client.AutoscalingV2().HorizontalPodAutoscalers("ns")
	old := func(most int32) *autoscalingac.HorizontalPodAutoscalerApplyConfiguration {
		return autoscalingac.HorizontalPodAutoscaler("a", "ns").WithSpec(autoscalingac.HorizontalPodAutoscalerSpec().
			WithMaxReplicas(most).WithTargetCPUUtilizationPercentage(50).
			WithScaleTargetRef(autoscalingac.CrossVersionObjectReference().WithKind("Deployment").WithName("front")))
	}
	wider := autoscalingv2ac.HorizontalPodAutoscaler("a", "ns").WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().WithMaxReplicas(7))
	_, err := one.Apply(ctx, old(3), metav1.ApplyOptions{FieldManager: "m"})
	require.NoError(t, err)
	_, err = two.Apply(ctx, wider, metav1.ApplyOptions{FieldManager: "n"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	forced, err := two.Apply(ctx, wider, metav1.ApplyOptions{FieldManager: "n", Force: true})
	require.NoError(t, err)
	require.EqualValues(t, 7, forced.Spec.MaxReplicas)
	_, err = one.Apply(ctx, old(3), metav1.ApplyOptions{FieldManager: "m"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	// One manager that changes its version loses none of its fields.
	both, err := two.Apply(ctx, autoscalingv2ac.HorizontalPodAutoscaler("a", "ns").WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
		WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().WithKind("Deployment").WithName("front"))), metav1.ApplyOptions{FieldManager: "m"})
	require.NoError(t, err)
	require.Equal(t, "front", both.Spec.ScaleTargetRef.Name)
	require.EqualValues(t, 7, both.Spec.MaxReplicas)
}

// TestEventsInBothGroups: an event that a newer recorder writes is found by an older reader.
func TestEventsInBothGroups(t *testing.T) {
	client := newClient(t)
	ctx := t.Context()
	_, err := client.EventsV1().Events("ns").Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e"}, Regarding: corev1.ObjectReference{Kind: "Pod", Name: "p", Namespace: "ns"},
		Note: "said", Reason: "R", Type: "Normal", EventTime: metav1.NewMicroTime(time.Now()), Action: "A", ReportingController: "c", ReportingInstance: "i",
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	found, err := client.CoreV1().Events("ns").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=p"})
	require.NoError(t, err)
	require.Len(t, found.Items, 1)
	require.Equal(t, "said", found.Items[0].Message)
	by, err := client.EventsV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "regarding.name=p,reason!=S,metadata.namespace=ns"})
	require.NoError(t, err)
	require.Len(t, by.Items, 1)
	none, err := client.EventsV1().Events("ns").List(ctx, metav1.ListOptions{FieldSelector: "regarding.name=q"})
	require.NoError(t, err)
	require.Empty(t, none.Items)
	_, err = client.EventsV1().Events("ns").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=p"})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.NoError(t, client.EventsV1().Events("ns").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "regarding.name=p"}))
	found, err = client.CoreV1().Events("ns").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, found.Items)
}

// TestVersionsOfATypedCollection: a collection of a Go type has its kind's versions, too.
func TestVersionsOfATypedCollection(t *testing.T) {
	s, err := apiserver.NewServer()
	require.NoError(t, err)
	defer s.Close()
	apiserver.Serve(s, builtin.Of[*corev1.Event]())
	require.True(t, s.Serves(eventsv1.SchemeGroupVersion.WithResource("events")))
	builtin.Serve(s)
	require.True(t, s.Serves(autoscalingv1.SchemeGroupVersion.WithResource("horizontalpodautoscalers")))
}
