package collection

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/store"
)

// Budgets are the PodDisruptionBudgets of a collection, for [Evict].
type Budgets struct {
	list func(namespace string) []*policyv1.PodDisruptionBudget
	take func(budget *policyv1.PodDisruptionBudget, pod string) error
}

// BudgetsIn are the budgets in a collection of PodDisruptionBudgets, as the Go type or as an
// interface that it has. Objects of other types are none.
func BudgetsIn[T store.Object](c *Collection[T]) *Budgets {
	return &Budgets{
		list: func(namespace string) (found []*policyv1.PodDisruptionBudget) {
			for _, obj := range c.Snapshot().All() {
				if budget, ok := any(obj).(*policyv1.PodDisruptionBudget); ok && budget.Namespace == namespace {
					found = append(found, budget)
				}
			}
			return found
		},
		take: func(budget *policyv1.PodDisruptionBudget, pod string) error {
			_, err := c.storage.Write(store.KeyOf(budget), func(stored T, found bool) (d Decision[T], err error) {
				if err := c.there(found, budget.Name); err != nil {
					return d, err
				}
				next, ok := any(stored.DeepCopyObject()).(*policyv1.PodDisruptionBudget)
				if !ok {
					return d, fmt.Errorf("a budget is a %T", stored)
				}
				if err := takeOne(next, pod); err != nil {
					return d, err
				}
				return c.updated(stored, c.ownership.track(stored, any(next).(T), evictor, c.ownership.status))
			})
			return err
		},
	}
}

// evictor is the field manager of the fields that an eviction writes to a budget.
const evictor = "kube-apiserver"

// maxDisrupted bounds the pods that a budget names as about to go, as in the API server.
const maxDisrupted = 2000

// takeOne takes one disruption from a budget. Errors: 429 if it has none, or if the controller has
// not seen it yet; 403 if its controller does not come after.
func takeOne(budget *policyv1.PodDisruptionBudget, pod string) error {
	s := &budget.Status
	resource := policyv1.Resource("poddisruptionbudget")
	switch {
	case s.ObservedGeneration < budget.Generation:
		return violates(budget, retryLater, "is still being processed by the server.")
	case s.DisruptionsAllowed < 0:
		return apierrors.NewForbidden(resource, budget.Name, errors.New("pdb disruptions allowed is negative"))
	case len(s.DisruptedPods) > maxDisrupted:
		return apierrors.NewForbidden(resource, budget.Name, errors.New("too many evictions are not confirmed by its controller"))
	case s.DisruptionsAllowed == 0:
		return violates(budget, 0, whyNone(s))
	}
	s.DisruptionsAllowed--
	if s.DisruptionsAllowed == 0 {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
			Reason: policyv1.InsufficientPodsReason, ObservedGeneration: s.ObservedGeneration,
		})
	}
	if s.DisruptedPods == nil {
		s.DisruptedPods = map[string]metav1.Time{}
	}
	s.DisruptedPods[pod] = now()
	return nil
}

// retryLater is when a client comes again if the controller has not seen the budget, in seconds.
const retryLater = 10

// whyNone says why a budget allows no disruption.
func whyNone(s *policyv1.PodDisruptionBudgetStatus) string {
	condition := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition)
	refused := condition != nil && condition.Status == metav1.ConditionFalse && condition.Message != ""
	switch {
	case refused && condition.Reason == policyv1.SyncFailedReason:
		return "does not allow evicting pods currently because it failed sync: " + condition.Message
	case s.CurrentHealthy <= s.DesiredHealthy:
		return fmt.Sprintf("needs %d healthy pods and has %d currently", s.DesiredHealthy, s.CurrentHealthy)
	case refused:
		return fmt.Sprintf("does not allow evicting pods currently (%s): %s", condition.Reason, condition.Message)
	}
	return "does not allow evicting pods currently"
}

// violates is the 429 for an eviction that a budget forbids.
func violates(budget *policyv1.PodDisruptionBudget, retryAfter int, why string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfter)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf("The disruption budget %s %s", budget.Name, why),
	})
	return err
}

// Evict asks the pod's budget, notes the cause in the pod's status and deletes the pod, as the
// eviction subresource does. Nil budgets allow everything. Pods that have not started, have ended
// or are being deleted need no budget, nor do pods that are not ready if their policy says so.
// Errors: 429 when the budget forbids it; 500 for a pod of two budgets; those of
// [Collection.Delete].
func Evict(pods *Collection[*corev1.Pod], budgets *Budgets, namespace, name string, options metav1.DeleteOptions) error {
	pod, err := pods.Get(namespace, name)
	if err != nil {
		return err
	}
	free, err := ask(budgets, pod)
	if err != nil {
		return err
	}
	given := options.Preconditions
	pinned := given != nil && given.ResourceVersion != nil
	if !pinned && free {
		options.Preconditions = &metav1.Preconditions{ResourceVersion: &pod.ResourceVersion}
		if given != nil {
			options.Preconditions.UID = given.UID
		}
	}
	err = evict(pods, namespace, name, options)
	if free && !pinned && apierrors.IsConflict(err) { // it may have become ready
		return apierrors.NewTooManyRequests("The pod has changed while it was being evicted.", retryLater)
	}
	return err
}

// ask takes the disruption of a pod from its budget. It reports free if the pod may go as it is
// now, without a budget that pays for it.
func ask(budgets *Budgets, pod *corev1.Pod) (free bool, err error) {
	if budgets == nil || pod.DeletionTimestamp != nil {
		return false, nil
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return false, nil
	case corev1.PodPending:
		return true, nil
	}
	var of []*policyv1.PodDisruptionBudget
	for _, budget := range budgets.list(pod.Namespace) {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.Labels)) {
			of = append(of, budget)
		}
	}
	switch {
	case len(of) == 0:
		return false, nil
	case len(of) > 1:
		return false, apierror.Unclassified("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
	case !isReady(pod) && sparesUnready(of[0]):
		return true, nil
	}
	return false, budgets.take(of[0], pod.Name)
}

// sparesUnready reports whether pods that are not ready may go.
func sparesUnready(budget *policyv1.PodDisruptionBudget) bool {
	if policy := budget.Spec.UnhealthyPodEvictionPolicy; policy != nil && *policy == policyv1.AlwaysAllow {
		return true
	}
	return budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// evict notes the cause in a pod's status and deletes the pod.
func evict(pods *Collection[*corev1.Pod], namespace, name string, options metav1.DeleteOptions) error {
	marked, err := pods.storage.Write(store.Key(namespace, name), func(stored *corev1.Pod, found bool) (d Decision[*corev1.Pod], err error) {
		if err := pods.there(found, name); err != nil {
			return d, err
		}
		if p := options.Preconditions; p != nil {
			if err := pods.checkPreconditions(stored, metav1.Preconditions{ResourceVersion: p.ResourceVersion}); err != nil {
				return d, err
			}
		}
		next := stored.DeepCopy()
		setTrue(next, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		})
		return Decision[*corev1.Pod]{Op: Put, Object: next}, nil
	})
	if err != nil {
		return err
	}
	if p := options.Preconditions; p != nil && p.ResourceVersion != nil {
		options.Preconditions = &metav1.Preconditions{UID: p.UID, ResourceVersion: &marked.ResourceVersion}
	}
	_, err = pods.Delete(namespace, name, options)
	return err
}
