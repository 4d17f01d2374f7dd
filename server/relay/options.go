package relay

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/server/watchcache"
)

// Option changes a [Relay].
type Option func(*options)

type options struct {
	scopes     []Scope
	aggregated map[schema.GroupResource]bool
	linger     time.Duration
	cache      []watchcache.Option
	minor      int
	audit      func(Read) // nil: none
	journals   string
	log        logr.Logger
}

func newOptions(list []Option) (o options, err error) {
	o = options{
		aggregated: map[schema.GroupResource]bool{},
		// A node's agents restart, and a person looks again, within minutes.
		linger: 5 * time.Minute,
		minor:  releaseOfTypes(),
		log:    klog.Background(),
	}
	if err := null.Options("relay", list, func(option Option) { option(&o) }); err != nil {
		return o, err
	}
	return o, cmp.Or(o.validate(), watchcache.Validate(o.cache...))
}

func (o options) validate() error {
	if o.linger < 0 {
		return fmt.Errorf("relay: WithLinger(%s): a time is not negative", o.linger)
	}
	seen := map[string]bool{}
	for _, s := range o.scopes {
		name := s.Resource.String()
		switch {
		case s.Resource.Resource == "":
			return fmt.Errorf("relay: Only: the scope %q names no resource", s)
		case seen[name]:
			return fmt.Errorf("relay: Only: two scopes of %s: there is one copy for each resource", name)
		}
		seen[name] = true
	}
	return nil
}

// Only copies the given scopes; there is at most one for each resource. By default each kind that a
// client reads is copied as a whole.
func Only(scopes ...Scope) Option {
	return func(o *options) { o.scopes = append(o.scopes, scopes...) }
}

// Aggregated also copies resources that an aggregated API serves: an APIService names another
// server for their group version. Such a server may show each user other objects of a list. A copy
// shows all of them to all who may list it, so name only resources for which that is right.
//
// By default the reads of aggregated APIs are passed on. So are those of kinds that are not built
// in, if the relay's credential may not get apiservices.apiregistration.k8s.io.
func Aggregated(resources ...schema.GroupResource) Option {
	return func(o *options) {
		for _, resource := range resources {
			o.aggregated[resource] = true
		}
	}
}

// WithLinger sets how long a copy stays after its last reader has gone. The default is five
// minutes; zero ends it at once.
func WithLinger(d time.Duration) Option { return func(o *options) { o.linger = d } }

// WithCache changes the caches of all copies, such as their windows.
func WithCache(list ...watchcache.Option) Option {
	return func(o *options) { o.cache = append(o.cache, list...) }
}

// WithJournals keeps the copies in files of a folder, so that they outlive the process: its watches
// go on where they ended. The folder and the files are their owner's alone. Secrets are never
// written. The default is no files.
func WithJournals(folder string) Option { return func(o *options) { o.journals = folder } }

// WithTypesOf sets the minor number of the Kubernetes release that the program's Go types are of.
// The default is that of the module k8s.io/api in the program. Zero reads all kinds as documents.
func WithTypesOf(minor int) Option { return func(o *options) { o.minor = minor } }

// WithLogger logs the starts and ends of copies, and is the log of their reflectors. The default is
// klog.
func WithLogger(log logr.Logger) Option { return func(o *options) { o.log = log } }

// releaseOfTypes is the minor number of k8s.io/api: its versions are v0.MINOR.PATCH. It is zero if
// the program does not tell.
func releaseOfTypes() int {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return 0
	}
	for _, d := range info.Deps {
		if d.Path != "k8s.io/api" {
			continue
		}
		if d.Replace != nil {
			d = d.Replace
		}
		if parts := strings.Split(d.Version, "."); len(parts) > 2 {
			minor, _ := strconv.Atoi(parts[1]) // zero if it is no number
			return minor
		}
	}
	return 0
}
