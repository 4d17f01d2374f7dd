// Package crd serves custom resources by their definitions, as the API server does. A
// CustomResourceDefinition becomes an apiserver.Resource:
//
//	definitions, err := crd.Load("config/crd")
//	if err != nil { … }
//	for _, definition := range definitions {
//		widgets, err := crd.Resource(definition)
//		if err != nil { … }
//		apiserver.Serve(server, widgets)
//	}
//
// The schema's work is done by the API server's own library, k8s.io/apiextensions-apiserver: fields
// that the schema does not have are pruned, defaults are filled in, and objects are validated, by
// the rules in CEL too. Server-side apply merges lists by their keys. Names, categories, columns,
// selectable fields and the subresources status and scale are the definition's.
//
// The package is a module of its own: its dependencies are those of an API server.
//
// # Limits
//
// [Resource] and [Serve] serve one version, the stored one, and objects as they were stored.
// [Versions] has all served ones, for a program with definitions that change under stored objects,
// such as cmd/tributary; [Definitions] and [Accept] are for the definitions themselves. No webhook
// is called.
//
// How to test with definitions: docs/howto/crd.md.
package crd
