package apiserver

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/server/internal/apierror"
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

// requestTimeout bounds every request but a watch, as on the API server.
const requestTimeout = time.Minute

// bounded is a request that ends after the time that its query names. A watch ends otherwise.
func bounded(r *http.Request) (*http.Request, context.CancelFunc, error) {
	query, lasts := r.URL.Query(), requestTimeout
	if watch, ok := query["watch"]; ok && !slices.Contains([]string{"0", "false"}, watch[0]) {
		return r, func() {}, nil
	}
	if given := query.Get("timeout"); given != "" {
		asked, err := time.ParseDuration(given)
		if err != nil {
			return r, nil, apierror.BadRequest("invalid timeout specified in the request URL - %v", err)
		}
		if asked > 0 {
			lasts = min(asked, lasts)
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), lasts)
	return r.WithContext(ctx), cancel, nil
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
