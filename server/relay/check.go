package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Check asks the upstream whether the resources of [Only] and [Aggregated] exist and can be copied
// as they are written. An error names the resource that may be meant. It returns nil if the
// upstream does not answer: the log has the fault once a copy is asked for.
func (r *Relay) Check(ctx context.Context) error {
	if len(r.scopes) == 0 && len(r.aggregated) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*askPatience)
	defer cancel()
	config := rest.CopyConfig(r.upstream.config)
	config.Timeout = askPatience
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	_, served, err := client.ServerGroupsAndResources() // an error may be of one group
	if len(served) == 0 {
		r.log.Error(err, "The upstream does not say what it serves: --resource is not checked")
		return nil
	}
	var wrong []error
	for resource := range r.aggregated {
		_, err := findResource(served, resource)
		wrong = append(wrong, err)
	}
	for _, s := range r.scopes {
		wrong = append(wrong, r.checkScope(ctx, served, s))
	}
	return errors.Join(wrong...)
}

// checkScope asks for one object of a scope.
func (r *Relay) checkScope(ctx context.Context, served []*metav1.APIResourceList, s Scope) error {
	resource, err := findResource(served, s.Resource)
	if err != nil {
		return err
	}
	by, err := r.upstream.owner(ctx, resource.GroupVersion())
	if err == nil {
		if refused := r.mayCopy(resource, by); refused != nil {
			return fmt.Errorf("resource %s: %w", s.Resource, refused)
		}
		err = r.upstream.sample(ctx, resource, s)
	}
	if apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) {
		return fmt.Errorf("resource %s: the upstream does not accept the selectors: %w", s, err)
	}
	if err != nil {
		r.log.Error(errors.New(why(err)), "The upstream does not show a resource that is to be copied", "resource", s.String())
	}
	return nil
}

// sample lists one object of a scope.
func (u *upstream) sample(ctx context.Context, resource schema.GroupVersionResource, s Scope) error {
	path := groupVersionPath(resource.GroupVersion())
	if s.Namespace != "" {
		path += "/namespaces/" + s.Namespace
	}
	return u.client.Get().AbsPath(path+"/"+resource.Resource).MaxRetries(0).
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").
		Param("limit", "1").Param("fieldSelector", text(s.Fields)).Param("labelSelector", text(s.Labels)).Do(ctx).Error()
}

// findResource finds a resource by its plural and its group. The error of another name says which
// names it may stand for.
func findResource(served []*metav1.APIResourceList, want schema.GroupResource) (found schema.GroupVersionResource, err error) {
	var meant []string
	for _, list := range served {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, kind := range list.APIResources {
			name := schema.GroupResource{Group: gv.Group, Resource: kind.Name}
			if name == want && !readable(kind) {
				return found, fmt.Errorf("resource %s cannot be copied: it cannot be listed and watched", want)
			}
			if name == want {
				return gv.WithResource(kind.Name), nil
			}
			if readable(kind) && isCalled(kind, want.Resource) && !slices.Contains(meant, name.String()) {
				meant = append(meant, name.String())
			}
		}
	}
	if len(meant) == 0 {
		return found, fmt.Errorf("the upstream serves no resource %s: name the plural and the group, such as pods or deployments.apps", want)
	}
	return found, fmt.Errorf("the upstream serves no resource %s: write %s", want, strings.Join(meant, " or "))
}

// isCalled reports whether people call a kind by a name.
func isCalled(kind metav1.APIResource, name string) bool {
	return strings.EqualFold(kind.Name, name) || strings.EqualFold(kind.SingularName, name) ||
		strings.EqualFold(kind.Kind, name) || slices.Contains(kind.ShortNames, strings.ToLower(name))
}
