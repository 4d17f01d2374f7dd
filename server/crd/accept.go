package crd

import (
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Accept decides under which names a definition's resource is served. It returns the definition
// with these names and the condition NamesAccepted in its status; Established is the caller's, once
// it serves the resource. A name that another definition of the group has been given stays its own:
// the definition keeps those that it had. Arguments are not changed.
func Accept(d *apiextensionsv1.CustomResourceDefinition, others []*apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	d = d.DeepCopy()
	resources, kinds := map[string]bool{}, map[string]bool{}
	for _, other := range others {
		if other.Spec.Group != d.Spec.Group || other.Name == d.Name {
			continue
		}
		names := other.Status.AcceptedNames
		for _, name := range append([]string{names.Plural, names.Singular}, names.ShortNames...) {
			resources[name] = true
		}
		kinds[names.Kind], kinds[names.ListKind] = true, true
	}
	wanted, given := d.Spec.Names, &d.Status.AcceptedNames
	reason, message := "NoConflicts", "no conflicts found"
	refuse := func(why string, err error) { reason, message = why, err.Error() }
	give := func(taken map[string]bool, name string, to *string, why string) {
		if name != *to && taken[name] {
			refuse(why, inUse(name))
			return
		}
		*to = name
	}
	give(resources, wanted.Plural, &given.Plural, "PluralConflict")
	give(resources, wanted.Singular, &given.Singular, "SingularConflict")
	var conflicts []error
	for _, name := range wanted.ShortNames {
		if resources[name] && !slices.Contains(given.ShortNames, name) {
			conflicts = append(conflicts, inUse(name))
		}
	}
	if err := utilerrors.NewAggregate(conflicts); err != nil {
		refuse("ShortNamesConflict", err)
	} else {
		given.ShortNames = wanted.ShortNames
	}
	give(kinds, wanted.Kind, &given.Kind, "KindConflict")
	give(kinds, wanted.ListKind, &given.ListKind, "ListKindConflict")
	given.Categories = wanted.Categories
	SetCondition(d, apiextensionsv1.NamesAccepted, reason == "NoConflicts", reason, message)
	if reason != "NoConflicts" && apihelpers.FindCRDCondition(d, apiextensionsv1.Established) == nil {
		SetCondition(d, apiextensionsv1.Established, false, "NotAccepted", "not all names are accepted")
	}
	return d
}

func inUse(name string) error { return fmt.Errorf("%q is already in use", name) }
