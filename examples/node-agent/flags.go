package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// options are the values of the flags.
type options struct {
	node       string
	config     *rest.Config // nil: the story
	manifests  string
	kubelet    string // URL of the kubelet's /pods
	token, ca  string // files for it
	logs       string
	state      string
	listen     string
	references bool
	length     time.Duration
	verbosity  int
	beat       time.Duration // between two steps of the story
	patience   time.Duration // of the lines of a new pod, for its workload
}

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

func parse(args []string, usage io.Writer) (options, error) {
	o := options{beat: time.Second, patience: 10 * time.Second}
	var kubeconfig string
	flags := flag.NewFlagSet("node-agent", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.node, "node", os.Getenv("NODE_NAME"), "the `name` of the node's Node object (default: $NODE_NAME)")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "`path` of a kubeconfig (default: the cluster that this runs in, or a story of its own)")
	flags.StringVar(&o.manifests, "manifests", "", "`folder` of static pods")
	flags.StringVar(&o.kubelet, "kubelet", "", "`URL` of the kubelet's pods, such as https://10.0.0.1:10250/pods")
	flags.StringVar(&o.token, "kubelet-token", account+"token", "`file` with the token for it")
	flags.StringVar(&o.ca, "kubelet-ca", account+"ca.crt", "`file` with the authority of its certificate")
	flags.StringVar(&o.logs, "logs", "/var/log/pods", "`folder` of the logs of all pods")
	flags.StringVar(&o.state, "state", "", "`folder` that keeps pods, owners and positions for a restart")
	flags.StringVar(&o.listen, "listen", "localhost:0", "`address` of /readyz, /metrics and /statusz")
	flags.BoolVar(&o.references, "references", false, "follow the ConfigMaps and Secrets that the pods mention, and list them at /references, without their values; deploy/references has the rights")
	flags.DurationVar(&o.length, "for", 0, "stop after this long (default: at SIGTERM or Ctrl-C)")
	flags.IntVar(&o.verbosity, "v", 0, "`level` of the log on stderr")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(usage, "Usage of node-agent:")
			flags.SetOutput(usage)
			flags.PrintDefaults()
		}
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: everything is a flag, see --help", flags.Arg(0))
	}
	return o, o.complete(kubeconfig)
}

// errNoNode names the lines of a manifest that tell the name of the node. A hostname need not be
// the name of a Node: a cloud provider may name it, or the flag --hostname-override.
var errNoNode = errors.New(`the name of the node is not known: give --node, or add to the container of the DaemonSet

        env:
        - name: NODE_NAME
          valueFrom: {fieldRef: {fieldPath: spec.nodeName}}`)

// complete finds the defaults.
func (o *options) complete(kubeconfig string) (err error) {
	if kubeconfig != "" {
		if o.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
			return fmt.Errorf("--kubeconfig %s cannot be used: %w", kubeconfig, err)
		}
	} else if o.config, err = rest.InClusterConfig(); errors.Is(err, rest.ErrNotInCluster) {
		o.config = nil
	} else if err != nil {
		return fmt.Errorf("the cluster's configuration cannot be used: %w", err)
	}
	switch {
	case o.node == "" && o.config == nil:
		o.node = "node-1" // of the story
	case o.node == "", strings.Contains(o.node, "$("): // as the kubelet leaves an unknown $(NAME)
		return errNoNode
	}
	return nil
}
