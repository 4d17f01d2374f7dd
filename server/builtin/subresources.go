package builtin

import (
	"crypto/rand"
	"errors"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/store"
)

// The subresources of built-in kinds beside status and scale. A new one has its place here, a
// mention in the row of its kind, a test and a line in docs/fake.md.
var (
	binding = apiserver.Subresource{
		Name: "binding", Kind: corev1.SchemeGroupVersion.WithKind("Binding"),
		New: func() store.Object { return &corev1.Binding{} }, Create: bind,
	}
	eviction = apiserver.Subresource{
		Name: "eviction", Kind: policyv1.SchemeGroupVersion.WithKind("Eviction"),
		New: func() store.Object { return &policyv1.Eviction{} }, Create: evict,
	}
	token = apiserver.Subresource{
		Name: "token", Kind: authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"),
		New: func() store.Object { return &authenticationv1.TokenRequest{} }, Create: issueToken,
	}
	finalize = apiserver.Subresource{
		Name: "finalize", Kind: corev1.SchemeGroupVersion.WithKind("Namespace"),
		New: func() store.Object { return &corev1.Namespace{} }, Update: finalizeNamespace,
	}
	approval = apiserver.Subresource{Name: "approval", AsStatus: true}
)

func bind(c apiserver.Creation) (store.Object, error) {
	pods, err := podsOf(c)
	if err != nil {
		return nil, err
	}
	_, err = collection.Bind(pods.With(c.Options), c.Body.(*corev1.Binding))
	return nil, err
}

func evict(c apiserver.Creation) (store.Object, error) {
	pods, err := podsOf(c)
	if err != nil {
		return nil, err
	}
	options := metav1.DeleteOptions{}
	if given := c.Body.(*policyv1.Eviction).DeleteOptions; given != nil {
		options = *given
	}
	o := c.Options
	o.DryRun = o.DryRun || len(options.DryRun) > 0
	return nil, collection.Evict(pods.With(o), budgets(c.Server, o), c.Body.GetNamespace(), c.Body.GetName(), options)
}

func finalizeNamespace(c apiserver.Creation) (store.Object, error) {
	if namespaces := apiserver.CollectionOf[store.Object](c.Server, c.Resource); namespaces != nil {
		return collection.Finalize(namespaces.With(c.Options), c.Body.(*corev1.Namespace))
	}
	if namespaces := apiserver.CollectionOf[*corev1.Namespace](c.Server, c.Resource); namespaces != nil {
		return collection.Finalize(namespaces.With(c.Options), c.Body.(*corev1.Namespace))
	}
	return nil, apierrors.NewInternalError(errors.New("the namespaces are not served as *corev1.Namespace"))
}

// podsOf are the pods that a subresource is created of.
func podsOf(c apiserver.Creation) (*collection.Collection[*corev1.Pod], error) {
	if pods := apiserver.CollectionOf[*corev1.Pod](c.Server, c.Resource); pods != nil {
		return pods, nil
	}
	return nil, apierrors.NewInternalError(errors.New("the pods are not served as *corev1.Pod"))
}

// budgets are the PodDisruptionBudgets that the server serves; nil if it serves none.
func budgets(s *apiserver.Server, o collection.WriteOptions) *collection.Budgets {
	resource := policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")
	if c := apiserver.CollectionOf[store.Object](s, resource); c != nil {
		return collection.BudgetsIn(c.With(o))
	}
	if c := apiserver.CollectionOf[*policyv1.PodDisruptionBudget](s, resource); c != nil {
		return collection.BudgetsIn(c.With(o))
	}
	return nil
}

// tokenSeconds is how long a token lasts if its client does not say.
const tokenSeconds = 3600

// issueToken answers with random text: the server asks no client for a token.
func issueToken(c apiserver.Creation) (store.Object, error) {
	if err := c.NotFound(); err != nil {
		return nil, err
	}
	request := c.Body.(*authenticationv1.TokenRequest)
	seconds := int64(tokenSeconds)
	if asked := request.Spec.ExpirationSeconds; asked != nil {
		seconds = *asked
	}
	request.Spec.ExpirationSeconds = &seconds
	request.CreationTimestamp = metav1.Now()
	request.Status = authenticationv1.TokenRequestStatus{
		Token:               rand.Text(),
		ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Duration(seconds) * time.Second)),
	}
	return request, nil
}
