package refs_test

import (
	"context"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/refs"
)

// agentOf is the variable of the environment by which this test binary becomes an agent: a program
// that reads some Secrets of the server at that address.
const agentOf = "TRIBUTARY_REFS_AGENT_OF"

const (
	planted  = 300
	referred = 5
)

func plantedName(i int) string { return fmt.Sprintf("planted-%03d", i) }

// beAgent reads the first Secrets, and lives until its input ends.
func beAgent(address string) error {
	client, err := listwatch.NewRESTClient(&rest.Config{Host: address, QPS: -1}, corev1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	secrets := refs.New(refs.FromClient[corev1.Secret](client, "secrets"))
	ended := make(chan error, 1)
	go func() { ended <- secrets.Run(ctx) }()
	for i := range referred {
		secrets.AddNames("agent", refs.In(ns, plantedName(i)))
		if _, err := secrets.Get(ctx, ns, plantedName(i)); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	return <-ended
}
