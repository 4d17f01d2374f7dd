package apiserver

import (
	"crypto/rand"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds with a subresource of their own.
const (
	requestKind  = "CertificateSigningRequest"
	approvalName = "approval" // writes the status, as the subresource status does
	accountKind  = "ServiceAccount"
	tokenName    = "token"
)

// tokenSeconds is how long a token lasts if its client does not say.
const tokenSeconds = 3600

func describeToken(plural string) metav1.APIResource {
	kind := authenticationv1.SchemeGroupVersion
	return metav1.APIResource{
		Name: plural + "/" + tokenName, Namespaced: true, Group: kind.Group, Version: kind.Version, Kind: "TokenRequest",
		Verbs: metav1.Verbs{"create"},
	}
}

// serveToken answers a request for a token of a service account. The token is random text: nothing
// asks for it.
func (e *resourceEndpoint[T]) serveToken(c call) error {
	if c.request.Method != http.MethodPost {
		return e.notAllowed(c)
	}
	request := &authenticationv1.TokenRequest{}
	if err := readPart(c, request, &request.ObjectMeta); err != nil {
		return err
	}
	if found, _ := e.state(c.target.Namespace, c.target.Name); !found {
		return apierrors.NewNotFound(c.target.Resource.GroupResource(), c.target.Name)
	}
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
	request.TypeMeta = metav1.TypeMeta{}
	doc, err := c.format.document(typeMeta("TokenRequest", authenticationv1.SchemeGroupVersion.String()), request)
	if err != nil {
		return err
	}
	respondBytes(c, c.format.contentType(false), http.StatusCreated, doc)
	return nil
}
