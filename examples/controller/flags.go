package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/controller/leader"
)

// options are the values of the flags.
type options struct {
	config    *rest.Config // nil: the story
	election  leader.Election
	listen    string
	length    time.Duration
	verbosity int

	// beat is the time between two steps of the story: it is told in about ten seconds.
	beat time.Duration
}

func parse(args []string, usage io.Writer) (*options, error) {
	o := &options{beat: 1500 * time.Millisecond}
	var kubeconfig string
	flags := flag.NewFlagSet("controller", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&kubeconfig, "kubeconfig", "", "`path` of a kubeconfig (default: the cluster that this runs in, or a story of its own)")
	flags.StringVar(&o.election.Namespace, "namespace", "default", "`namespace` of the lease")
	flags.StringVar(&o.election.Name, "lease", "pods-per-node", "`name` of the lease that replicas share")
	flags.StringVar(&o.election.Identity, "identity", "", "`name` of this replica (default: the hostname and a random part)")
	flags.DurationVar(&o.election.LeaseDuration, "lease-duration", 15*time.Second, "how long a leader that has died is waited for")
	flags.DurationVar(&o.election.RenewDeadline, "renew-deadline", 10*time.Second, "how long a leader tries to renew before it gives up")
	flags.DurationVar(&o.election.RetryPeriod, "retry-period", 2*time.Second, "how often the lease is renewed, or asked for")
	flags.StringVar(&o.listen, "listen", "localhost:0", "`address` of /readyz, /metrics and /statusz")
	flags.DurationVar(&o.length, "for", 0, "stop after this long (default: at Ctrl-C)")
	flags.IntVar(&o.verbosity, "v", 0, "`level` of the log on stderr; 2 shows requests")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(usage, "Usage of controller:")
			flags.SetOutput(usage)
			flags.PrintDefaults()
		}
		return o, err
	}
	if err := o.check(flags.Args()); err != nil {
		return o, err
	}
	return o, o.complete(kubeconfig)
}

// check refuses values that make no sense.
func (o *options) check(rest []string) error {
	e := &o.election
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q: everything is a flag, see --help", rest[0])
	case len(validation.IsDNS1123Label(e.Namespace)) > 0:
		return fmt.Errorf("--namespace %q cannot be the name of a namespace", e.Namespace)
	case len(validation.IsDNS1123Subdomain(e.Name)) > 0:
		return fmt.Errorf("--lease %q cannot be the name of a lease", e.Name)
	case e.LeaseDuration%time.Second != 0:
		return errors.New("--lease-duration must be in whole seconds, as a lease has it")
	case e.RetryPeriod <= 0 || e.RenewDeadline <= e.RetryPeriod*6/5 || e.LeaseDuration <= e.RenewDeadline:
		return errors.New("--lease-duration must be longer than --renew-deadline, and that 1.2 times longer than --retry-period")
	case o.length < 0:
		return errors.New("--for must not be negative")
	}
	return nil
}

// complete finds the defaults.
func (o *options) complete(kubeconfig string) (err error) {
	if kubeconfig != "" {
		if o.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
			return fmt.Errorf("--kubeconfig %s cannot be used: %w", kubeconfig, err)
		}
	} else if o.config, err = rest.InClusterConfig(); errors.Is(err, rest.ErrNotInCluster) {
		o.config = nil
		return nil
	} else if err != nil {
		return fmt.Errorf("the cluster's configuration cannot be used: %w", err)
	}
	o.config.QPS, o.config.Burst = 50, 100 // client-go's own bound is 5 requests a second
	return nil
}
