package apiserver

import (
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/watchcache"
)

// readRequest reads the query of a list, a watch or a get with the API machinery's own decoder, and
// checks it by the API server's rules: 400 for a parameter that cannot be read, 422 for parameters
// that contradict each other.
func readRequest(c call) (watchcache.Request, error) {
	r := watchcache.Request{Namespace: c.target.Namespace, Name: c.target.Name}
	err := scheme.ParameterCodec.DecodeParameters(c.request.URL.Query(), metav1.SchemeGroupVersion, &r.ListOptions)
	if err != nil {
		return r, apierrors.NewBadRequest(err.Error())
	}
	return r, r.Validate()
}

const (
	// minimumTimeout is the shortest time that a watch without timeoutSeconds lasts. The longest is
	// twice as much, and the choice is random, so that clients do not all come back at once.
	minimumTimeout = 30 * time.Minute
	// maximumTimeout bounds the timeout that a client may ask for.
	maximumTimeout = 24 * time.Hour
)

// watchSeconds is how long a watch lasts.
func watchSeconds(asked *int64) *int64 {
	seconds := int64((minimumTimeout + rand.N(minimumTimeout)) / time.Second)
	if asked != nil && *asked > 0 {
		seconds = min(*asked, int64(maximumTimeout/time.Second))
	}
	return &seconds
}
