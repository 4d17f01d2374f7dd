package fieldtypes

import "k8s.io/kube-openapi/pkg/validation/spec"

// The forms of the library's types in JSON: its own embed each other. It has them in YAML, too.
type (
	definition struct {
		Name string
		atom `yaml:",inline"`
	}
	atom struct {
		Scalar string  `json:",omitempty"`
		List   *list   `json:",omitempty"`
		Map    *object `json:",omitempty"`
	}
	list struct {
		Element  reference `yaml:"elementType"`
		Relation string    `json:",omitempty" yaml:"elementRelationship"`
		Keys     []string  `json:",omitempty"`
	}
	object struct {
		Fields   []field    `json:",omitempty"`
		Element  *reference `json:",omitempty" yaml:"elementType"`
		Relation string     `json:",omitempty" yaml:"elementRelationship"`
	}
	field struct {
		Name    string
		Type    reference
		Default any `json:",omitempty"`
	}
	reference struct {
		Named    string `json:",omitempty" yaml:"namedType"`
		Inlined  *atom  `json:",omitempty" yaml:",inline"`
		Relation string `json:",omitempty" yaml:"elementRelationship"`
		Nullable bool   `json:",omitempty"`
	}
)

// openAPI is a type as types.json has it, without unions, which the library does not use.
func (a atom) openAPI() *spec.Schema {
	made := &spec.Schema{}
	switch {
	case a.List != nil && a.Map != nil: // anything
		related(made, a.Map.Relation)
	case a.List != nil:
		made.Typed("array", "")
		made.Items = &spec.SchemaOrArray{Schema: a.List.Element.openAPI()}
		switch {
		case len(a.List.Keys) > 0:
			made.AddExtension("x-kubernetes-list-type", "map")
			made.AddExtension("x-kubernetes-list-map-keys", a.List.Keys)
		case a.List.Relation == "associative":
			made.AddExtension("x-kubernetes-list-type", "set")
		}
	case a.Map != nil:
		made.Typed("object", "")
		for _, f := range a.Map.Fields {
			of := f.Type.openAPI()
			of.Default = f.Default
			made.SetProperty(f.Name, *of)
		}
		made.AdditionalProperties = &spec.SchemaOrBool{}
		if a.Map.Element != nil {
			made.AdditionalProperties.Schema = a.Map.Element.openAPI()
		}
		related(made, a.Map.Relation)
	case a.Scalar == "numeric":
		made.Typed("number", "")
	case a.Scalar == "untyped":
		made.Typed("string", "int-or-string")
	default:
		made.Typed(a.Scalar, "")
	}
	return made
}

func (r reference) openAPI() *spec.Schema {
	if r.Named == "" {
		if r.Inlined == nil {
			return (atom{}).openAPI()
		}
		return r.Inlined.openAPI()
	}
	made := spec.RefSchema("#/definitions/" + r.Named)
	related(made, r.Relation)
	return made
}

func related(made *spec.Schema, relation string) {
	switch relation {
	case "atomic":
		made.AddExtension("x-kubernetes-map-type", "atomic")
	case "separable":
		made.AddExtension("x-kubernetes-map-type", "granular")
	}
}
