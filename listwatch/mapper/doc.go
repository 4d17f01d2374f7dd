// Package mapper finds collections by the names that people use, as kubectl does.
//
//	m, err := mapper.New(config)
//	deployments, err := mapper.ListWatch[unstructured.Unstructured](m, "deploy", listwatch.InNamespace("shop"))
//	if err != nil { … }
//	informer.New(deployments)
//
// A name is a resource ("deployments"), its singular or kind ("Deployment"), or a short name
// ("deploy"). It may have a group ("deployments.apps"), or version and group
// ("deployments.v1.apps"), and upper and lower case are the same. Without a group the server's
// preferred one counts.
//
// Most programs know their resources and need no discovery: listwatch.FromClient takes the plural.
package mapper
