package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// owner is the server behind the upstream that answers for a group version.
type owner int

const (
	unknown    owner = iota // the relay may not ask
	local                   // the upstream itself: what a user may list does not depend on the user
	aggregated              // another one, which may show each user something else
)

// apiServices is the path of the objects that name the servers behind an API server.
const apiServices = "/apis/apiregistration.k8s.io/v1/apiservices/"

// owner asks for the server behind a group version. An upstream without an APIService for it
// answers itself. So does every upstream for the core group, which makes it one; most agents read
// no other.
func (u *upstream) owner(ctx context.Context, gv schema.GroupVersion) (owner, error) {
	if gv.Group == "" {
		return local, nil
	}
	var service struct {
		Spec struct{ Service *struct{ Name string } }
	}
	switch err := u.get(ctx, apiServices+gv.Version+"."+gv.Group, &service); {
	case apierrors.IsNotFound(err):
		return local, nil
	case apierrors.IsForbidden(err):
		return unknown, nil
	case err != nil:
		return unknown, err
	case service.Spec.Service != nil:
		return aggregated, nil
	}
	return local, nil
}

// mayCopy is the reason not to copy a resource; nil if it can be shown to all who may list it.
func (r *Relay) mayCopy(resource schema.GroupVersionResource, by owner) error {
	switch name := resource.GroupResource(); {
	case by == local, r.aggregated[name], by == unknown && isBuiltin(resource):
		return nil
	case by == aggregated:
		return fmt.Errorf("an aggregated API serves %s, and may show each user something else: name it by --aggregated to show all of it to all who may list it", name)
	default:
		return fmt.Errorf("the relay may not see who serves %s: grant it get of apiservices.apiregistration.k8s.io, or name it by --aggregated", name)
	}
}

// guard checks each list and watch of a copy before it is sent. It ends the copy if another server
// answers for the kind now, or if the copy no longer has the kind's scope or all of its fields.
type guard struct {
	http.RoundTripper
	*kindCopy
}

// WrappedRoundTripper is found by apimachinery.
func (g guard) WrappedRoundTripper() http.RoundTripper { return g.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (g guard) RoundTrip(r *http.Request) (*http.Response, error) {
	// a proof, which brings nothing in
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return g.RoundTripper.RoundTrip(r)
	}
	by, err := g.relay.upstream.owner(r.Context(), g.resource.GroupVersion())
	if err != nil {
		return nil, err
	}
	if err := g.relay.mayCopy(g.resource, by); err != nil {
		g.refuse(refusedFor, err)
		return nil, err
	}
	if err := g.outdated(r.Context(), isTrue(r.URL.Query(), "watch")); err != nil {
		g.end(ended, err)
		return nil, err
	}
	return g.RoundTripper.RoundTrip(r)
}

var (
	errGone    = errors.New("the upstream serves it no more")
	errChanged = errors.New("its definition has another kind or scope now")
	errNewer   = errors.New("the upstream is of a later release than the relay's Go types")
)

// outdated is how the upstream differs from what the copy was made for; nil if it does not, or does
// not say. Its release is asked for at a watch alone: a server is upgraded by a restart.
func (c *kindCopy) outdated(ctx context.Context, watches bool) error {
	switch {
	case c.typed && watches && c.relay.upstream.check(ctx) == nil && c.relay.upstream.release() > c.relay.minor:
		return errNewer
	case isBuiltin(c.resource):
		return nil
	}
	var list metav1.APIResourceList
	gv := c.resource.GroupVersion()
	if err := c.relay.upstream.get(ctx, groupVersionPath(gv), &list); err != nil && !apierrors.IsNotFound(err) {
		return nil
	}
	now, found := (&answer{kinds: list.APIResources}).find(c.resource)
	if found && now.Kind == c.Kind && now.Namespaced == c.Namespaced {
		return nil
	}
	c.relay.upstream.forget(gv)
	if !found {
		return errGone
	}
	return errChanged
}
