package apiserver

import (
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/server/internal/apierror"
)

// review is a question about users, which is answered and not stored. There is neither
// authentication nor authorization, so each user is an administrator.
type review struct {
	schema.GroupVersionResource
	kind string
	// question makes an empty question, and a function that puts the answer into it.
	question func() (body runtime.Object, answer func())
}

var (
	authorization  = authorizationv1.SchemeGroupVersion
	authentication = authenticationv1.SchemeGroupVersion
)

var reviews = []review{
	{authentication.WithResource("selfsubjectreviews"), "SelfSubjectReview", func() (runtime.Object, func()) {
		r := &authenticationv1.SelfSubjectReview{}
		return r, func() {
			r.CreationTimestamp = metav1.Now()
			r.Status.UserInfo = authenticationv1.UserInfo{
				Username: "admin", Groups: []string{"system:masters", "system:authenticated"},
			}
		}
	}},
	{authorization.WithResource("selfsubjectaccessreviews"), "SelfSubjectAccessReview", func() (runtime.Object, func()) {
		r := &authorizationv1.SelfSubjectAccessReview{}
		return r, func() { r.Status = allowed }
	}},
	{authorization.WithResource("selfsubjectrulesreviews"), "SelfSubjectRulesReview", func() (runtime.Object, func()) {
		r := &authorizationv1.SelfSubjectRulesReview{}
		return r, func() {
			all := []string{"*"}
			r.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}}
			r.Status.NonResourceRules = []authorizationv1.NonResourceRule{{Verbs: all, NonResourceURLs: all}}
		}
	}},
	{authorization.WithResource("subjectaccessreviews"), "SubjectAccessReview", func() (runtime.Object, func()) {
		r := &authorizationv1.SubjectAccessReview{}
		return r, func() { r.Status = allowed }
	}},
}

var allowed = authorizationv1.SubjectAccessReviewStatus{Allowed: true}

func (r review) describe() metav1.APIResource {
	return metav1.APIResource{
		Name: r.Resource, SingularName: strings.ToLower(r.kind), Kind: r.kind, Verbs: metav1.Verbs{"create"},
	}
}

// findReview finds the review that a path names.
func findReview(t Target) (review, bool) {
	for _, r := range reviews {
		if r.GroupVersionResource == t.Resource && t.Name == "" && t.Namespace == "" {
			return r, true
		}
	}
	return review{}, false
}

// serve answers POST.
func (r review) serve(c call) error {
	if c.request.Method != http.MethodPost {
		return apierror.Refused(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
			"the server does not allow "+c.request.Method+" on "+r.Resource)
	}
	body, err := readBody(c)
	if err != nil {
		return err
	}
	question, answer := r.question()
	if _, _, err := decode(bodyType(c), body, question, false); err != nil {
		return err
	}
	answer()
	question.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	doc, err := c.format.document(typeMeta(r.kind, r.GroupVersion().String()), question)
	if err != nil {
		return err
	}
	respondBytes(c, c.format.contentType(false), http.StatusCreated, doc)
	return nil
}
