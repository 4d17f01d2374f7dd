package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tributary-go/tributary/cmd/tributary/reviews"
	"github.com/tributary-go/tributary/server/relay"
)

// relayOptions are the flags of relay.
type relayOptions struct {
	listening
	kubeconfig string
	context    string
	data       string
	scopes     []relay.Scope
	linger     time.Duration
	clientCA   string
	audiences  []string
	renewal    time.Duration
	hold       time.Duration
	aggregated []string
	audit      auditing
	verbosity  int
}

// parseRelay reads the arguments behind relay. The flag package has printed its own errors.
func parseRelay(args []string, stderr io.Writer) (relayOptions, error) {
	var o relayOptions
	flags := flag.NewFlagSet("tributary relay", flag.ContinueOnError)
	flags.SetOutput(stderr)
	o.listening.register(flags)
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` with the address of the upstream, and the relay's own credential (default: those of the pod that this runs in)")
	flags.StringVar(&o.context, "context", "", "`name` of a context in --kubeconfig")
	flags.StringVar(&o.data, "data", "", "`folder` that keeps the copies over a restart, Secrets excepted, and the certificate; it is made if there is none")
	o.registerScopes(flags)
	list(flags, &o.aggregated, "aggregated", "`name` of a resource of an aggregated API to copy all the same: all who may list it see all its objects; repeatable (default: none)")
	o.audit.register(flags)
	flags.DurationVar(&o.linger, "linger", 5*time.Minute, "how `long` a copy stays after its last reader")
	flags.StringVar(&o.clientCA, "client-ca-file", "", "`file` with the authorities of client certificates (default: tokens alone)")
	list(flags, &o.audiences, "audience", "`name` that the tokens of clients must be for (default: the upstream's own); repeatable")
	flags.DurationVar(&o.renewal, "renew", time.Minute, "how `long` a token and a right count until the upstream is asked again")
	flags.DurationVar(&o.hold, "hold", 10*time.Minute, "how much `longer` they count while the upstream does not answer")
	for _, name := range []string{"v", "verbosity"} {
		flags.IntVar(&o.verbosity, name, 0, "1 logs what happens to each copy, 2 each list and watch")
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: all arguments are flags", flags.Arg(0))
	}
	if o.insecure && (o.clientCA != "" || len(o.audiences) > 0) {
		return o, errors.New("--insecure asks clients for nothing: leave it out, or --client-ca-file and --audience")
	}
	return o, errors.Join(o.audit.check(), o.listening.check())
}

// registerScopes has flags that narrow the --resource before them.
func (o *relayOptions) registerScopes(flags *flag.FlagSet) {
	flags.Func("resource", "`name` of a resource to copy, such as pods or deployments.apps; repeatable (default: each kind that is read)", func(text string) error {
		o.scopes = append(o.scopes, relay.Scope{Resource: schema.ParseGroupResource(text)})
		return nil
	})
	narrow := func(name, usage string, set func(*relay.Scope, string) error) {
		flags.Func(name, usage+" of the --resource before it that are copied", func(text string) error {
			if len(o.scopes) == 0 {
				return errors.New("it narrows the --resource before it: give that first")
			}
			return set(&o.scopes[len(o.scopes)-1], text)
		})
	}
	narrow("namespace", "`name` of the only namespace", func(s *relay.Scope, text string) error {
		s.Namespace = text
		return nil
	})
	narrow("field-selector", "`selector` for the objects, such as spec.nodeName=$NODE,", func(s *relay.Scope, text string) (err error) {
		s.Fields, err = fields.ParseSelector(text)
		return err
	})
	narrow("label-selector", "`selector` for the objects", func(s *relay.Scope, text string) (err error) {
		s.Labels, err = labels.Parse(text)
		return err
	})
}

// config is the way to the upstream.
func (o relayOptions) config() (*rest.Config, error) {
	if o.kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("%w: give --kubeconfig, or run in a pod", err)
		}
		return config, nil
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: o.kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", o.kubeconfig, err)
	}
	return config, nil
}

// relaying are the options of the relay.
func (o relayOptions) relaying() []relay.Option {
	chosen := []relay.Option{relay.Only(o.scopes...), relay.WithLinger(o.linger), relay.WithJournals(o.journals())}
	for _, name := range o.aggregated {
		chosen = append(chosen, relay.Aggregated(schema.ParseGroupResource(name)))
	}
	return chosen
}

// reviewing are the options of its access control.
func (o relayOptions) reviewing() []reviews.Option {
	chosen := []reviews.Option{reviews.WithRenewal(o.renewal), reviews.WithHold(o.hold)}
	if o.clientCA != "" {
		chosen = append(chosen, reviews.WithClientCA(o.clientCA))
	}
	if len(o.audiences) > 0 {
		chosen = append(chosen, reviews.WithAudiences(o.audiences...))
	}
	return chosen
}
