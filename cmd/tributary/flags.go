package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// options are the flags of serve.
type options struct {
	data       string
	endpoints  []string
	prefix     string
	caFile     string
	certFile   string
	keyFile    string
	user       string
	registry   bool
	backup     string
	force      bool
	encryption string
	resources  []string
	verbosity  int

	listening
	writeAnyway bool // below the prefix of a cluster
}

// passwordVariable is the environment's name for the password of --etcd-user: an argument would be
// seen by every user of the machine.
const passwordVariable = "ETCD_PASSWORD"

// parse reads the arguments behind serve. The flag package has printed its own errors.
func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("tributary serve", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.data, "data", "tributary-data", "`folder` of the etcd in this process; it is made if there is none")
	list(flags, &o.endpoints, "etcd", "`URL` of an etcd to use in place of the one in this process; repeatable")
	flags.StringVar(&o.prefix, "etcd-prefix", "", "beginning of all `keys` (default: "+ownPrefix+"; "+clusterPrefix+", that of a cluster, with --registry and --backup)")
	flags.BoolVar(&o.writeAnyway, "write-anyway", false, "write below a prefix in which kube-apiserver keeps its keys, which can break the cluster")
	o.listening.register(flags)
	flags.StringVar(&o.caFile, "etcd-cafile", "", "`file` with the certificate authority of --etcd")
	flags.StringVar(&o.certFile, "etcd-certfile", "", "`file` with the certificate that --etcd wants to see")
	flags.StringVar(&o.keyFile, "etcd-keyfile", "", "`file` with the key of --etcd-certfile")
	flags.StringVar(&o.user, "etcd-user", "", "`name` of a user of --etcd, whose password is in $"+passwordVariable)
	flags.BoolVar(&o.registry, "registry", false, "read --etcd, which is a Kubernetes cluster's own, and write nothing")
	flags.StringVar(&o.backup, "backup", "", "`file` to serve, read-only, in place of an etcd: a saved snapshot, or a copy of member/snap/db")
	flags.BoolVar(&o.force, "force", false, "serve a damaged --backup as far as it can be read, and say what is missing")
	flags.StringVar(&o.encryption, "encryption-provider-config", "", "`file` with the EncryptionConfiguration of the API server that encrypted the values, as kube-apiserver has it")
	list(flags, &o.resources, "resource", "what to serve; repeatable: the `name` of a built-in resource, such as pods or deployments.apps, "+
		"or a file of CustomResourceDefinitions (default: every built-in resource, and every definition that etcd has)")
	for _, name := range []string{"v", "verbosity"} {
		flags.IntVar(&o.verbosity, name, 0, "1 logs what happens to each collection and etcd's warnings, 2 all that etcd logs, 3 each request to etcd")
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: all arguments are flags", flags.Arg(0))
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return o, o.check(given)
}

// list is a flag that may be repeated, or hold several values with commas between them.
func list(flags *flag.FlagSet, values *[]string, name, usage string) {
	flags.Func(name, usage, func(text string) error {
		for value := range strings.SplitSeq(text, ",") {
			if value = strings.TrimSpace(value); value == "" {
				return errors.New("an empty value")
			}
			*values = append(*values, value)
		}
		return nil
	})
}

// check refuses flags that contradict each other.
func (o options) check(given map[string]bool) error {
	remote := len(o.endpoints) > 0
	for _, name := range []string{"etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-user", "registry"} {
		if given[name] && !remote {
			return fmt.Errorf("--%s needs --etcd: give the URL of the etcd", name)
		}
	}
	switch {
	case o.force && o.backup == "":
		return errors.New("--force is for a damaged file: give it with --backup")
	case o.backup != "" && (remote || given["data"]):
		return errors.New("--backup is served without an etcd: leave out --etcd and --data")
	case remote && given["data"]:
		return errors.New("--data is for the etcd in this process: leave it out, or --etcd")
	case (o.certFile == "") != (o.keyFile == ""):
		return errors.New("--etcd-certfile and --etcd-keyfile belong together: give both")
	case o.user != "" && os.Getenv(passwordVariable) == "":
		return fmt.Errorf("--etcd-user needs a password: set %s in the environment", passwordVariable)
	}
	return o.listening.check()
}

// readOnly reports whether nothing may be written.
func (o options) readOnly() bool { return o.registry || o.backup != "" }
