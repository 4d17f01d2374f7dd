// Package openapi describes the kinds of a server in OpenAPI v3 and v2, as clients read it: kubectl
// explains fields by it, and asks it whether the server validates.
//
// The schema of a built-in kind is made of its Go type by reflection: names and forms from its
// fields, descriptions from the SwaggerDoc methods of k8s.io/api, merge keys from the tags. The
// schema of a custom resource is that of its definition. Enums, which only the comments of Go types
// have, are missing.
package openapi
