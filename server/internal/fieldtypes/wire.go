package fieldtypes

import smd "sigs.k8s.io/structured-merge-diff/v6/schema"

// The forms of the library's types in JSON: its own embed each other.
type (
	definition struct {
		Name string
		atom
	}
	atom struct {
		Scalar smd.Scalar `json:",omitempty"`
		List   *list      `json:",omitempty"`
		Map    *object    `json:",omitempty"`
	}
	list struct {
		Element  reference
		Relation smd.ElementRelationship `json:",omitempty"`
		Keys     []string                `json:",omitempty"`
	}
	object struct {
		Fields   []field                 `json:",omitempty"`
		Element  *reference              `json:",omitempty"`
		Relation smd.ElementRelationship `json:",omitempty"`
		Unions   []smd.Union             `json:",omitempty"`
	}
	field struct {
		Name    string
		Type    reference
		Default any `json:",omitempty"`
	}
	reference struct {
		Named    string                   `json:",omitempty"`
		Inlined  *atom                    `json:",omitempty"`
		Relation *smd.ElementRelationship `json:",omitempty"`
		Nullable bool                     `json:",omitempty"`
	}
)

func (a atom) schema() (made smd.Atom) {
	if a.Scalar != "" {
		made.Scalar = &a.Scalar
	}
	if a.List != nil {
		made.List = &smd.List{ElementType: a.List.Element.schema(), ElementRelationship: a.List.Relation, Keys: a.List.Keys}
	}
	if a.Map == nil {
		return made
	}
	made.Map = &smd.Map{ElementRelationship: a.Map.Relation, Unions: a.Map.Unions}
	if a.Map.Element != nil {
		made.Map.ElementType = a.Map.Element.schema()
	}
	for _, f := range a.Map.Fields {
		if number, ok := f.Default.(float64); ok { // there are integers alone
			f.Default = int64(number)
		}
		made.Map.Fields = append(made.Map.Fields, smd.StructField{Name: f.Name, Type: f.Type.schema(), Default: f.Default})
	}
	return made
}

func (r reference) schema() smd.TypeRef {
	made := smd.TypeRef{ElementRelationship: r.Relation, Nullable: r.Nullable}
	if r.Named != "" {
		made.NamedType = &r.Named
	}
	if r.Inlined != nil {
		made.Inlined = r.Inlined.schema()
	}
	return made
}
