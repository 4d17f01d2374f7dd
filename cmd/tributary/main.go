// Command tributary serves collections that etcd keeps to kubectl and every other Kubernetes
// client:
//
//	tributary serve                                    # an API server on an etcd in the process
//	tributary serve --etcd http://10.0.0.1:2379        # on an etcd of yours, beside other servers
//	tributary serve --etcd … --registry                # a cluster's own etcd, read-only
//	tributary serve --backup snapshot.db               # out of a backup file, read-only
//
// It prints the path of a kubeconfig, which has the server's certificate and its token.
// docs/serve.md is the operator's page.
//
// Run `tributary serve -h` for all flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = "usage: tributary serve [flags]; tributary serve -h lists them"

// run is main without the process: it returns the exit code, and nothing that it started is left.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 || args[0] != "serve" {
		fmt.Fprintln(stderr, usage)
		return exitUsage
	}
	o, err := parse(args[1:], stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "tributary: %v\n", err)
		return exitUsage
	}
	if err := serve(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "tributary: %v\n", err)
		return exitFailed
	}
	return exitOK
}
