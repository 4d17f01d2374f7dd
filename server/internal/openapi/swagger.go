package openapi

import (
	"maps"
	"strings"
)

// Swagger is the OpenAPI v2 document of several documents of OpenAPI v3.
func Swagger(documents ...map[string]any) map[string]any {
	definitions, paths := schema{}, schema{}
	for _, document := range documents {
		for path, operations := range document["paths"].(schema) {
			converted := schema{}
			for method, o := range operations.(schema) {
				converted[method] = swaggerOperation(o.(schema))
			}
			paths[path] = converted
		}
		for name, s := range document["components"].(schema)["schemas"].(models) {
			definitions[name] = swaggerSchema(s)
		}
	}
	return schema{
		"swagger": "2.0", "info": schema{"title": "Kubernetes", "version": "unversioned"},
		"paths": paths, "definitions": definitions,
	}
}

func swaggerOperation(o schema) schema {
	parameters := []schema{}
	for _, p := range o["parameters"].([]schema) {
		parameters = append(parameters, schema{"name": p["name"], "in": p["in"], "type": "string", "uniqueItems": true})
	}
	return schema{
		extensionKind: o[extensionKind], "x-kubernetes-action": o["x-kubernetes-action"], "parameters": parameters,
		"responses": schema{"200": schema{"description": "OK"}},
	}
}

// swaggerSchema is a schema in the words of v2, which has no alternatives and no reference with
// anything beside it but a description.
func swaggerSchema(value any) any {
	switch v := value.(type) {
	case schema:
		s := schema{}
		for key, member := range v {
			switch key {
			case "nullable":
			case "properties": // their names are no words of a schema
				properties := schema{}
				for name, p := range member.(schema) {
					properties[name] = swaggerSchema(p)
				}
				s[key] = properties
			case "$ref":
				s[key] = strings.Replace(member.(string), referencePrefix, "#/definitions/", 1)
			case "oneOf", "anyOf":
				if _, typed := v["type"]; !typed && v["x-kubernetes-int-or-string"] == nil {
					s["type"] = "string"
				}
			case "allOf":
				if only, ok := member.([]schema); ok && len(only) == 1 {
					maps.Copy(s, swaggerSchema(only[0]).(schema))
					continue
				}
			default:
				s[key] = swaggerSchema(member)
			}
		}
		if s["$ref"] != nil {
			delete(s, "default")
		}
		return s
	case []any:
		list := make([]any, 0, len(v))
		for _, member := range v {
			list = append(list, swaggerSchema(member))
		}
		return list
	}
	return value
}
