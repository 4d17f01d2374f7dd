package crd

import (
	"fmt"

	"github.com/tributary-go/tributary/server/apiserver"
)

// Serve adds an empty collection for each definition in files and folders, which [Load] reads. A
// fake is then like a cluster after kubectl apply: builtin.Serve adds the kinds that are there
// without a definition. Errors: those of Load and [Resource]; a resource that is served already.
// Collections that were added before an error stay.
func Serve(server *apiserver.Server, paths ...string) error {
	for _, path := range paths {
		definitions, err := Load(path)
		if err != nil {
			return err
		}
		for _, definition := range definitions {
			r, err := Resource(definition)
			if err != nil {
				return err
			}
			if server.Serves(r.Kind.GroupVersionResource()) {
				return fmt.Errorf("%s: %s is served already", path, definition.Name)
			}
			apiserver.Serve(server, r)
		}
	}
	return nil
}
