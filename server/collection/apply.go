package collection

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/tributary-go/tributary/server/internal/apierror"
	"github.com/tributary-go/tributary/server/internal/object"
)

// Apply is a server-side apply (KEP-555) of a configuration in YAML or JSON, by the manager of
// [Collection.As]. The object is created, or gets the fields that are applied and loses those that
// its manager applied before and no longer does. Lists are merged by the schema of the kind (see
// [Rules.Types]). Force takes fields over that other managers own. Errors: Conflict with
// another manager, or with a resource version or UID in the configuration; a 500 without a reason
// for a field that the schema does not have; those of [Collection.Create] and [Collection.Update].
func (c *Collection[T]) Apply(namespace, name string, configuration []byte, force bool) (obj T, created bool, err error) {
	return c.apply(namespace, name, configuration, force, "")
}

// ApplyStatus is the server-side apply of a status. Errors: NotFound; those of [Collection.Apply].
func (c *Collection[T]) ApplyStatus(namespace, name string, configuration []byte, force bool) (obj T, err error) {
	obj, _, err = c.apply(namespace, name, configuration, force, object.Status.Name())
	return obj, err
}

func (c *Collection[T]) apply(namespace, name string, configuration []byte, force bool, subresource string) (obj T, created bool, err error) {
	applied, objections, err := readApplied(name, configuration)
	if err != nil {
		return obj, false, err
	}
	if applied.GetName() == "" && c.client && c.part == "" {
		return obj, false, apierror.BadRequest("the applied configuration has no name")
	}
	applied.SetName(name)
	by := c.ownership.whole
	if subresource != "" {
		by = c.ownership.status
	}
	obj, err = c.write(namespace, name, func(stored T, found bool) (d Decision[T], err error) {
		created = !found
		switch {
		case created && subresource != "":
			return d, c.notFound(name)
		case created && applied.GetUID() != "":
			return d, c.conflict(name, fmt.Errorf("the configuration is for the object of UID %s, and there is none",
				applied.GetUID()))
		case created:
			stored = c.Kind().Empty()
		}
		next, err := c.ownership.apply(stored, applied, c.options.Manager, force, by)
		if err == nil {
			err = c.object(objections, func(twice ...error) error {
				return apierror.BadRequest("error strict decoding YAML: %v", errors.Join(twice...))
			})
		}
		if err == nil {
			err = c.Kind().Place(namespace, next)
		}
		if err != nil {
			return d, err
		}
		c.fill(next)
		if err := object.Tidy(next); err != nil {
			return d, err
		}
		if created {
			c.dropStatus(next)
			return Decision[T]{Op: Put, Object: next}, c.prepare(next)
		}
		return c.replaced(stored, next, patch, func(stored, next T) T {
			if subresource != "" {
				return c.withStatus(stored, next)
			}
			c.keepStatus(stored, next)
			return next
		})
	})
	return obj, created, err
}

// readApplied reads a configuration for the object of the given name. Objections are about keys
// that are there twice.
func readApplied(name string, configuration []byte) (applied *unstructured.Unstructured, objections []error, err error) {
	doc, err := yaml.YAMLToJSON(configuration)
	content := map[string]any{}
	if deep := object.CheckDepth(doc); deep != nil {
		return nil, nil, deep
	}
	if err == nil {
		err = utiljson.Unmarshal(doc, &content)
	}
	if err != nil {
		// The error quotes it.
		return nil, nil, apierror.BadRequest("the applied configuration is not a YAML or JSON object")
	}
	applied = &unstructured.Unstructured{Object: content}
	if given := applied.GetName(); given != "" && given != name {
		return nil, nil, apierror.OtherName(applied.GetName(), name)
	}
	return applied, object.Twice(configuration), nil
}
