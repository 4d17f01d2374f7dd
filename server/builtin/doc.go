// Package builtin describes the kinds that kube-apiserver serves without a definition: their names,
// scopes, short names, categories, selectable fields, columns and scale.
//
//	server, err := apiserver.NewServer()
//	builtin.Serve(server) // kubectl finds the resources of a new cluster
//
//	deployments := apiserver.Serve(other, builtin.Of[*appsv1.Deployment]())
//
// The kinds are those of which client-go has a Go type, and API services, in the version that
// kube-apiserver 1.36 stores. The fake and `tributary serve` have the same table. A row of it says
// how a kind differs from the others: how its generation counts, and whether an update must name a
// version. Defaults and validation are modelled for pods, and in part for namespaces, ConfigMaps
// and Secrets: see docs/fake.md.
package builtin
