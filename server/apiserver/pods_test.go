package apiserver_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
)

// TestPodsAreBoundAndEvicted by an unmodified clientset, as schedulers and kubectl drain do it.
func TestPodsAreBoundAndEvicted(t *testing.T) {
	r := newRig(t)
	pods := r.client(t, runtime.ContentTypeProtobuf).CoreV1().Pods("ns")
	_, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	to := func(node string) *corev1.Binding {
		return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
	}
	require.NoError(t, pods.Bind(t.Context(), to("n1"), metav1.CreateOptions{}))
	require.True(t, apierrors.IsConflict(pods.Bind(t.Context(), to("n2"), metav1.CreateOptions{})))
	bound, err := pods.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "n1", bound.Spec.NodeName)
	require.Equal(t, corev1.PodScheduled, bound.Status.Conditions[0].Type)

	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	require.NoError(t, pods.EvictV1(t.Context(), eviction))
	evicted, err := pods.Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotNil(t, evicted.DeletionTimestamp, "its kubelet has the grace period to end it")
	require.Equal(t, corev1.DisruptionTarget, evicted.Status.Conditions[1].Type)

	eviction.Name = "never"
	require.True(t, apierrors.IsNotFound(pods.EvictV1(t.Context(), eviction)))
}

// TestBudgetsDecideOfEvictions: a budget pays for one eviction, forbids the next, and lets pods go
// that are not ready if its policy says so.
func TestBudgetsDecideOfEvictions(t *testing.T) {
	r := newRig(t)
	budgets := apiserver.Serve(r.Server, builtin.Of[*policyv1.PodDisruptionBudget]())
	running := func(name string, ready corev1.ConditionStatus) {
		p := pod(name, onNode("n1"), labelled("app", "web"))
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
		r.create(t, p)
	}
	for _, name := range []string{"a", "b"} {
		running(name, corev1.ConditionTrue)
	}
	running("unready", corev1.ConditionFalse)
	budget, err := budgets.Create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	})
	require.NoError(t, err)
	evict := func(name, query string) response { // a clientset would come again after a 429
		return r.do(t, "POST", "/api/v1/namespaces/ns/pods/"+name+"/eviction"+query, `{"metadata":{"name":"`+name+`"}}`)
	}
	require.Equal(t, http.StatusTooManyRequests, evict("a", "").code, "the budget has not been computed")
	status := budget.DeepCopy()
	status.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 1, CurrentHealthy: 2, DesiredHealthy: 2}
	_, err = budgets.UpdateStatus(status)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, evict("a", "?dryRun=All").code, "a dry run takes nothing")
	require.Equal(t, http.StatusCreated, evict("a", "").code)
	taken, err := budgets.Get("ns", "web")
	require.NoError(t, err)
	require.Zero(t, taken.Status.DisruptionsAllowed)
	require.Contains(t, taken.Status.DisruptedPods, "a")
	forbidden := evict("b", "").status(t)
	require.EqualValues(t, http.StatusTooManyRequests, forbidden.Code)
	require.Equal(t, policyv1.DisruptionBudgetCause, forbidden.Details.Causes[0].Type)
	require.Equal(t, http.StatusCreated, evict("unready", "").code, "as many are healthy as must be")
	require.Equal(t, http.StatusCreated, evict("a", "").code, "it is going")

	_, err = budgets.Create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "all"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}},
	})
	require.NoError(t, err)
	require.Contains(t, evict("b", "").status(t).Message, "more than one PodDisruptionBudget")
}
