package client_test

import (
	"fmt"
	"net/http/httptest"

	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/builtin"
	"github.com/tributary-go/tributary/server/crd"
)

// startTributary stands in for the control plane of envtest.
func startTributary() (*rest.Config, error) {
	server, err := apiserver.NewServer()
	if err != nil {
		return nil, err
	}
	builtin.Serve(server)
	definitions, err := crd.Load("testdata")
	if err != nil {
		return nil, err
	}
	for _, definition := range definitions {
		r, err := crd.Resource(definition)
		if err != nil {
			return nil, err
		}
		apiserver.Serve(server, r)
	}
	fmt.Println("tributary made: server")
	listener := httptest.NewServer(server) // lasts until the process ends
	return &rest.Config{Host: listener.URL, QPS: -1}, nil
}
