package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

// options are the values of the flags.
type options struct {
	node      string
	client    rest.Interface // nil: no API server
	manifests string
	url       string
	headers   headers
	fileEvery time.Duration
	httpEvery time.Duration
	json      bool
	kubelet   bool   // like it
	keep      string // folder for a checkpoint
	length    time.Duration
	verbosity int
	status    string // address of the status page

	// beat is the time between two steps of the story: each change gets a line of its own, and all
	// are over within ten seconds.
	beat time.Duration

	// paint chooses the colors for a stream.
	paint func(io.Writer) paint

	kubeconfig string
	set        map[string]bool // flags that were given
}

// embedded reports whether nothing real was named.
func (o options) embedded() bool { return o.client == nil && o.manifests == "" && o.url == "" }

type header struct{ name, value string }

// headers collects --manifest-url-header. It never shows a value.
type headers []header

func (h *headers) String() string { return "" }

func (h *headers) Set(text string) error {
	name, value, ok := strings.Cut(text, ":")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return errors.New("want NAME:VALUE")
	}
	*h = append(*h, header{name, strings.TrimSpace(value)})
	return nil
}

func parse(args []string, usage io.Writer) (options, error) {
	o := options{beat: 600 * time.Millisecond, paint: paintFor}
	var format string
	flags := flag.NewFlagSet("kubelet-pods", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.node, "node", "", "the `name` of the node whose pods are wanted (default: the hostname; in the story node-1)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "`path` of a kubeconfig (default: the cluster that this runs in, if any)")
	flags.StringVar(&o.manifests, "manifests", "", "`path` of a manifest file, or of a folder of them")
	flags.StringVar(&o.url, "manifest-url", "", "`URL` of manifests")
	flags.Var(&o.headers, "manifest-url-header", "`NAME:VALUE` of a header for that URL; may be repeated")
	flags.DurationVar(&o.fileEvery, "file-check-frequency", 20*time.Second, "how often files are looked at, whatever inotify says")
	flags.DurationVar(&o.httpEvery, "http-check-frequency", 20*time.Second, "how often the URL is read")
	flags.BoolVar(&o.kubelet, "like-kubelet", false, "do as the kubelet does where it does harm, too")
	flags.StringVar(&o.keep, "checkpoint", "", "`folder` that keeps the API server's pods for a restart without it")
	flags.StringVar(&format, "output", "text", "`format`: text, a line per pod and change, or json, a line per update")
	flags.DurationVar(&o.length, "for", 0, "stop after this long (default: at Ctrl-C)")
	flags.StringVar(&o.status, "status", "", "`address` of a page with the state of all sources, such as localhost:8080")
	flags.IntVar(&o.verbosity, "v", 0, "`level` of the log on stderr; 2 shows requests and the sources' status")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(usage, "Usage of kubelet-pods:")
			flags.SetOutput(usage)
			flags.PrintDefaults()
		}
		return o, err
	}
	o.set = map[string]bool{}
	flags.Visit(func(f *flag.Flag) { o.set[f.Name] = true })
	o.json = format == "json"
	if err := o.check(flags.Args(), format); err != nil {
		return o, err
	}
	return o, o.complete()
}

// check refuses values that make no sense.
func (o *options) check(rest []string, format string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q: everything is a flag, see --help", rest[0])
	case format != "text" && format != "json":
		return fmt.Errorf("--output %q: give text or json", format)
	case o.fileEvery <= 0 || o.httpEvery <= 0:
		return errors.New("--file-check-frequency and --http-check-frequency must be positive")
	case o.length < 0:
		return errors.New("--for must not be negative")
	case len(o.headers) > 0 && o.url == "":
		return errors.New("--manifest-url-header needs --manifest-url")
	case o.set["manifest-url"]:
		u, err := url.Parse(o.url) // the error would repeat the URL, and with it a password
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return errors.New("--manifest-url: give an absolute http or https URL")
		}
	}
	return nil
}

// complete finds the defaults.
func (o *options) complete() (err error) {
	if o.client, err = apiClient(o.kubeconfig); err != nil {
		return err
	}
	if o.node == "" && o.embedded() {
		o.node = "node-1"
	}
	if o.node == "" {
		if o.node, err = os.Hostname(); err != nil {
			return fmt.Errorf("the hostname cannot be read, give --node: %w", err)
		}
	}
	o.node = strings.ToLower(strings.TrimSpace(o.node)) // as the kubelet does
	if wrong := validation.IsDNS1123Subdomain(o.node); len(wrong) > 0 {
		return fmt.Errorf("--node %q cannot be the name of a node: %s", o.node, wrong[0])
	}
	return nil
}
