package openapi

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/util"
)

// schema is a part of an OpenAPI document.
type schema = map[string]any

// models are the schemas of Go types, by the names of their models.
type models map[string]schema

const referencePrefix = "#/components/schemas/"

// add describes a struct, with all that it refers to, and returns its name.
func (m models) add(t reflect.Type) string {
	name := modelName(t)
	if _, known := m[name]; known {
		return name
	}
	s := schema{}
	m[name] = s // before its fields, which may refer to it
	if text := docs(t)[""]; text != "" {
		s["description"] = text
	}
	if form := ownForm(t); form != nil {
		maps.Copy(s, form)
		return name
	}
	s["type"] = "object"
	properties := schema{}
	if required := m.addFields(t, properties); len(required) > 0 {
		slices.Sort(required)
		s["required"] = required
	}
	if len(properties) > 0 {
		s["properties"] = properties
	}
	return name
}

// addFields describes the fields of a struct, and returns the names of the required ones.
func (m models) addFields(t reflect.Type, into schema) (required []string) {
	described := docs(t)
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case !f.IsExported() || name == "-":
			continue
		case f.Anonymous && name == "":
			required = append(required, m.addFields(pointed(f.Type), into)...)
			continue
		case !ok || name == "":
			name = f.Name
		}
		omitted := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		into[name] = m.field(f, described[name], omitted)
		if !omitted {
			required = append(required, name)
		}
	}
	return required
}

// field describes a field of a struct.
func (m models) field(f reflect.StructField, description string, omitted bool) schema {
	s := m.value(f.Type)
	beside := schema{}
	if value := zero(f.Type); value != nil && (!omitted || f.Type.Kind() == reflect.Struct) {
		beside["default"] = value
	}
	if description != "" {
		beside["description"] = description
	}
	for extension, tag := range map[string]string{
		"x-kubernetes-patch-strategy": "patchStrategy", "x-kubernetes-patch-merge-key": "patchMergeKey",
	} {
		if value := f.Tag.Get(tag); value != "" {
			beside[extension] = value
		}
	}
	return with(s, beside)
}

// with adds to a schema. Nothing may stand beside a reference, which becomes the only member of
// allOf.
func with(s, beside schema) schema {
	if reference, ok := s["$ref"]; ok && len(beside) > 0 {
		s = schema{"allOf": []schema{{"$ref": reference}}}
	}
	maps.Copy(s, beside)
	return s
}

// value describes the values of a type.
func (m models) value(t reflect.Type) schema {
	t = pointed(t)
	switch t.Kind() {
	case reflect.Struct:
		return schema{"$ref": referencePrefix + m.add(t)}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return schema{"type": "string", "format": "byte"}
		}
		return schema{"type": "array", "items": m.element(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": m.element(t.Elem())}
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number", "format": "double"}
	case reflect.Int64, reflect.Int, reflect.Uint64:
		return schema{"type": "integer", "format": "int64"}
	case reflect.Int32, reflect.Uint32, reflect.Int16, reflect.Uint16, reflect.Int8:
		return schema{"type": "integer", "format": "int32"}
	}
	return schema{"type": "object"}
}

// element describes the values of a list or a map.
func (m models) element(t reflect.Type) schema {
	beside := schema{}
	if value := zero(t); value != nil {
		beside["default"] = value
	}
	return with(m.value(t), beside)
}

// zero is the default of a type if its zero value is written; nil for others.
func zero(t reflect.Type) any {
	switch t.Kind() {
	case reflect.String:
		return ""
	case reflect.Bool:
		return false
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Float32, reflect.Float64:
		return 0
	case reflect.Struct:
		if ownForm(t) == nil {
			return schema{}
		}
	}
	return nil
}

// ownForm is the form of a type that says so itself, such as a time; nil for others.
func ownForm(t reflect.Type) schema {
	value := reflect.Zero(t).Interface()
	typed, ok := value.(interface{ OpenAPISchemaType() []string })
	if !ok {
		return nil
	}
	form := schema{}
	if several, ok := value.(interface{ OpenAPIV3OneOfTypes() []string }); ok {
		var one []schema
		for _, t := range several.OpenAPIV3OneOfTypes() {
			one = append(one, schema{"type": t})
		}
		form["oneOf"] = one
	} else if types := typed.OpenAPISchemaType(); len(types) > 0 { // else it takes any value
		form["type"] = types[0]
	}
	if formatted, ok := value.(interface{ OpenAPISchemaFormat() string }); ok && formatted.OpenAPISchemaFormat() != "" {
		form["format"] = formatted.OpenAPISchemaFormat()
	}
	return form
}

// docs are the descriptions of a type and its fields.
func docs(t reflect.Type) map[string]string {
	if documented, ok := reflect.Zero(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return documented.SwaggerDoc()
	}
	return nil
}

// modelName is the name of a type in OpenAPI.
func modelName(t reflect.Type) string {
	if named, ok := reflect.Zero(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		return named.OpenAPIModelName()
	}
	return util.ToRESTFriendlyName(t.PkgPath() + "." + t.Name())
}

func pointed(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
