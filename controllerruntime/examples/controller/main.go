// Command controller labels each node with the number of its pods, as examples/controller of
// Tributary does, in a program of controller-runtime. Only two lines of it are Tributary's.
//
//	go run -C controllerruntime ./examples/controller --kubeconfig path
//
// It needs list and watch of pods and nodes, and patch of nodes.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tributary-go/tributary/controllerruntime"
)

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "controller: %v\n", err)
		os.Exit(1)
	}
}

// run works until ctx ends, which is no error.
func run(ctx context.Context, config *rest.Config, stdout io.Writer) error {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		NewCache: controllerruntime.NewCache, // the one line that must be

		// Each look at a node sees the label that this program wrote last.
		NewClient: controllerruntime.NewClient,
		Metrics:   metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := (&reconciler{client: mgr.GetClient(), stdout: stdout}).setup(ctx, mgr); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
