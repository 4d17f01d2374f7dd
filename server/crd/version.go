package crd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiversion "k8s.io/apimachinery/pkg/version"
	kjson "sigs.k8s.io/json"

	"github.com/tributary-go/tributary/server/apiserver"
)

// Version is one served version of a custom resource, over objects that are stored in another
// version, or that were stored when the definition was another one.
type Version struct {
	Resource apiserver.Resource[*document]
	// Read makes of a stored object, in JSON, the served one: of this version, without the fields
	// that its schema does not have, with its defaults. Nil: objects are served as they are stored.
	Read func(stored []byte) ([]byte, error)
	// Write makes of an object in JSON the stored one. Nil: objects are stored as they are served.
	Write func(served []byte) ([]byte, error)
}

// Versions describes all served versions of a definition, the preferred one first. Objects of
// several versions differ in their apiVersion alone: a conversion by a webhook is not made, and of
// such a definition the stored version is served. The definition must be valid. Errors: no version
// is left to be served; a schema that is not structural.
func Versions(definition *apiextensionsv1.CustomResourceDefinition) (all []Version, err error) {
	d := completed(definition)
	stored, err := stored(d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name, err)
	}
	converts := d.Spec.Conversion == nil || d.Spec.Conversion.Strategy == apiextensionsv1.NoneConverter
	for _, v := range d.Spec.Versions {
		if !v.Served || !v.Storage && !converts {
			continue
		}
		made, err := newVersion(d, v, stored.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		all = append(all, made)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no version is served, or none but those that a webhook converts", d.Name)
	}
	slices.SortFunc(all, func(a, b Version) int {
		return -apiversion.CompareKubeAwareVersionStrings(a.Resource.Kind.Version, b.Resource.Kind.Version)
	})
	return all, nil
}

var errNoStorage = errors.New("no version has storage: true")

func newVersion(d *apiextensionsv1.CustomResourceDefinition, v version, stored string) (made Version, err error) {
	r, err := describe(d, v)
	if err != nil {
		return made, err
	}
	made.Resource = r
	// Objects that were stored under the first state of a definition have all that it asks for.
	if d.Generation > 1 || len(d.Status.StoredVersions) > 1 || v.Name != stored {
		made.Read = reading(r)
	}
	if v.Name != stored {
		apiVersion := schema.GroupVersion{Group: r.Kind.Group, Version: stored}.String()
		made.Write = func(served []byte) ([]byte, error) {
			return edited(served, func(obj *document) error {
				obj.SetAPIVersion(apiVersion)
				return nil
			})
		}
	}
	return made, nil
}

func reading(r apiserver.Resource[*document]) func([]byte) ([]byte, error) {
	apiVersion := r.Kind.GroupVersionKind().GroupVersion().String()
	return func(stored []byte) ([]byte, error) {
		return edited(stored, func(obj *document) error {
			obj.SetAPIVersion(apiVersion)
			_, err := r.Rules.Prune(obj)
			r.Rules.Default(obj)
			return err
		})
	}
}

// edited is a document in JSON after a change.
func edited(text []byte, change func(*document) error) ([]byte, error) {
	obj := &document{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &obj.Object); err != nil {
		return nil, err
	}
	if err := change(obj); err != nil {
		return nil, err
	}
	changed, err := json.Marshal(obj.Object)
	return bytes.TrimSpace(changed), err
}
