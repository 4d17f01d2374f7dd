package apiserver

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tributary-go/tributary/server/collection"
	"github.com/tributary-go/tributary/server/internal/apierror"
)

// podSubresources are the parts of a pod that a client may only create: what they do to the pod.
var podSubresources = map[string]func(c call, pods *collection.Collection[*corev1.Pod], o collection.WriteOptions) error{
	"binding":  serveBinding,
	"eviction": serveEviction,
}

// describePodSubresources is the part of them in discovery, in which kubectl drain looks for
// evictions.
func describePodSubresources() []metav1.APIResource {
	create := metav1.Verbs{"create"}
	return []metav1.APIResource{
		{Name: "pods/binding", Namespaced: true, Kind: "Binding", Verbs: create},
		{Name: "pods/eviction", Namespaced: true, Group: "policy", Version: "v1", Kind: "Eviction", Verbs: create},
	}
}

// servePodSubresource answers POST to a subresource of a pod.
func servePodSubresource(c call, pods *collection.Collection[*corev1.Pod]) error {
	o, err := createOptions(c)
	if err != nil {
		return err
	}
	if err := podSubresources[c.target.Subresource](c, pods, o); err != nil {
		return err
	}
	respondStatus(c, c.format, &metav1.Status{
		TypeMeta: typeMeta("Status", "v1"), Status: metav1.StatusSuccess, Code: http.StatusCreated,
	})
	return nil
}

func serveBinding(c call, pods *collection.Collection[*corev1.Pod], o collection.WriteOptions) error {
	var binding corev1.Binding
	if err := readPart(c, &binding, &binding.ObjectMeta); err != nil {
		return err
	}
	_, err := collection.Bind(pods.With(o), &binding)
	return err
}

func serveEviction(c call, pods *collection.Collection[*corev1.Pod], o collection.WriteOptions) error {
	var eviction policyv1.Eviction
	if err := readPart(c, &eviction, &eviction.ObjectMeta); err != nil {
		return err
	}
	options := metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		options = *eviction.DeleteOptions
	}
	o.DryRun = o.DryRun || len(options.DryRun) > 0
	return collection.Evict(pods.With(o), c.server.budgets(o), c.target.Namespace, c.target.Name, options)
}

// budgets are the PodDisruptionBudgets that the server serves; nil if it serves none.
func (s *Server) budgets(o collection.WriteOptions) *collection.Budgets {
	if e := s.endpoint(policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")); e != nil {
		return e.budgets(o)
	}
	return nil
}

// budgets are the objects as PodDisruptionBudgets; nil if they are read-only.
func (e *resourceEndpoint[T]) budgets(o collection.WriteOptions) *collection.Budgets {
	if e.collection == nil {
		return nil
	}
	return collection.BudgetsIn(e.collection.With(o))
}

// readPart reads the body of a subresource, whose name is that of the pod.
func readPart(c call, into runtime.Object, meta *metav1.ObjectMeta) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	if _, _, err := decode(bodyType(c), body, into, false); err != nil {
		return err
	}
	if meta.Name != "" && meta.Name != c.target.Name {
		return apierror.OtherName(meta.Name, c.target.Name)
	}
	meta.Name, meta.Namespace = c.target.Name, c.target.Namespace
	return nil
}
