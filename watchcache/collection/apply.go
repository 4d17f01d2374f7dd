package collection

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tributary-go/tributary/watchcache/internal/apierror"
	"github.com/tributary-go/tributary/watchcache/internal/object"
)

// Apply is a server-side apply (KEP-555) of a configuration in YAML or JSON, by the manager of
// [Collection.As]. The object is created, or gets the fields that are applied and loses those that
// its manager applied before and no longer does. Force takes fields over that other managers own.
// See ownership for what is simpler than in the API server. Errors: Conflict with another manager,
// or with a resource version or UID in the configuration; those of [Collection.Create] and
// [Collection.Update].
func (c *Collection[T]) Apply(namespace, name string, configuration []byte, force bool) (obj T, created bool, err error) {
	applied, err := readApplied(name, configuration)
	if err != nil {
		return obj, false, err
	}
	if applied.GetName() == "" && c.client {
		return obj, false, apierror.BadRequest("the applied configuration has no name")
	}
	applied.SetName(name)
	for attempt := 1; ; attempt++ {
		stored, err := c.Get(namespace, name)
		created := apierrors.IsNotFound(err)
		if created && applied.GetUID() != "" {
			return obj, false, c.conflict(name, fmt.Errorf("the configuration is for the object of UID %s, and there is none",
				applied.GetUID()))
		}
		if created {
			stored, err = c.resource().Empty(), nil
		}
		if err != nil {
			return obj, false, err
		}
		next, err := c.ownership.apply(stored, applied.DeepCopy(), c.options.Manager, force)
		if err == nil {
			err = c.resource().Place(namespace, next)
		}
		if err != nil {
			return obj, false, err
		}
		written, err := c.writeApplied(next, created)
		// A version of the configuration's own is a precondition: its conflict is final.
		again := apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) && applied.GetResourceVersion() == ""
		if !again || attempt == patchAttempts {
			return written, created, err
		}
	}
}

// writeApplied stores what an apply has made.
func (c *Collection[T]) writeApplied(next T, created bool) (T, error) {
	if created {
		return c.Create(next)
	}
	return c.replace(next, patch, func(stored, next T) T {
		c.keepStatus(stored, next)
		return next
	})
}

// readApplied reads a configuration for the object of the given name.
func readApplied(name string, configuration []byte) (*unstructured.Unstructured, error) {
	doc, err := yaml.YAMLToJSON(configuration)
	content := map[string]any{}
	if err == nil {
		err = utiljson.Unmarshal(doc, &content)
	}
	if err != nil {
		// The error quotes it.
		return nil, apierror.BadRequest("the applied configuration is not a YAML or JSON object")
	}
	applied := &unstructured.Unstructured{Object: content}
	if given := applied.GetName(); given != "" && given != name {
		return nil, apierror.OtherName(applied.GetName(), name)
	}
	delete(content, object.Status.Name()) // an update of the object leaves it alone
	return applied, nil
}
