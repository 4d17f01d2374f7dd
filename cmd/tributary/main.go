// Command tributary serves kubectl and every other Kubernetes client: out of an etcd, or out of
// copies of a cluster.
//
//	tributary serve                                    # an API server on an etcd in the process
//	tributary serve --etcd http://10.0.0.1:2379        # on an etcd of yours, beside other servers
//	tributary serve --etcd … --registry                # a cluster's own etcd, read-only
//	tributary serve --backup snapshot.db               # out of a backup file, read-only
//	tributary relay --kubeconfig up.kubeconfig         # before a cluster: one watch for all clients
//
// docs/serve.md and docs/relay.md are the operator's pages.
//
// Run `tributary help serve` or `tributary help relay` for all flags.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"go.uber.org/zap/zapcore"
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

const usage = `usage:
  tributary serve [flags]     serve collections to kubectl and other clients; "tributary help serve" lists the flags
  tributary relay [flags]     answer reads of a cluster out of copies; "tributary help relay" lists the flags
  tributary version           print the version
  tributary help [command]    print this, or the flags of a command
`

// run is main without the process: it returns the exit code, and nothing that it started is left.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	name, rest := "", []string(nil)
	if len(args) > 0 {
		name, rest = args[0], args[1:]
	}
	if known := commands[name]; known != nil {
		return known(ctx, rest, stdout, stderr)
	}
	switch name {
	case "version", "-version", "--version":
		fmt.Fprintln(stdout, version())
		return exitOK
	case "help", "-h", "-help", "--help":
		if len(rest) > 0 && commands[rest[0]] != nil {
			return commands[rest[0]](ctx, []string{"-h"}, stdout, stdout)
		}
		fmt.Fprint(stdout, usage)
		return exitOK
	case "":
		fmt.Fprint(stderr, usage)
	default:
		fmt.Fprintf(stderr, "tributary: there is no command %q\n%s", name, usage)
	}
	return exitUsage
}

// commands are those with flags. Each returns its exit code.
var commands = map[string]func(ctx context.Context, args []string, stdout, stderr io.Writer) int{
	"serve": command(parse, serve),
	"relay": command(parseRelay, serveRelay),
}

// command is a command that runs with the options that it parses from its arguments.
func command[O any](parse func(args []string, stderr io.Writer) (O, error),
	run func(ctx context.Context, o O, stdout, stderr io.Writer) error) func(context.Context, []string, io.Writer, io.Writer) int {
	return func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		o, err := parse(args, stderr)
		switch {
		case errors.Is(err, flag.ErrHelp):
			return exitOK
		case err != nil:
			fmt.Fprintf(stderr, "tributary: %v\n", err)
			return exitUsage
		}
		if err := run(ctx, o, stdout, zapcore.Lock(zapcore.AddSync(stderr))); err != nil {
			fmt.Fprintf(stderr, "tributary: %v\n", err)
			return exitFailed
		}
		return exitOK
	}
}

// version is that of the module, and of the etcd and the Kubernetes libraries in the program.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "tributary (unknown version)"
	}
	text := "tributary " + cmp.Or(info.Main.Version, "(devel)")
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += " " + s.Value
		}
	}
	text += " " + info.GoVersion
	for _, d := range info.Deps {
		if name, named := map[string]string{"go.etcd.io/etcd/server/v3": "etcd", "k8s.io/apimachinery": "kubernetes"}[d.Path]; named {
			text += ", " + name + " " + d.Version
		}
	}
	return text
}
