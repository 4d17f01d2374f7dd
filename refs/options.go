package refs

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tributary-go/tributary/informer"
	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/reflector"
	"github.com/tributary-go/tributary/store"
)

// Option changes how [Refs] works.
type Option func(*options)

type options struct {
	missing      error              // options that are nil
	log          []reflector.Option // with the logger, if one was given
	pace         int
	idle         time.Duration
	share        int
	liveness     time.Duration
	watchTimeout time.Duration
	feeds        []func(context.Context, func(types.UID, Names))
}

// defaults, with their reasons.
func defaults() options {
	return options{
		// A thousand names in some seconds. More dial more connections than they need.
		pace:         16,
		idle:         5 * time.Minute, // the kubelet's
		liveness:     90 * time.Second,
		watchTimeout: 30 * time.Minute, // the kubelet's: each watch that begins sends its object
	}
}

// WithPace sets how many requests may wait for their state at the same time, of all names together.
// Gets that wait have eight more. Default 16. Once its state has come, a watch does not count. The
// rate limiter of the REST client (QPS, Burst) holds in addition: at client-go's default of 5 a
// second, a thousand names take three minutes.
func WithPace(n int) Option { return func(o *options) { o.pace = n } }

// WithIdle sets after which time without a Get the watch of a name is ended. The next Get reads the
// object again, by one request. Default 5 minutes, as in the kubelet; 0: never. While a loop
// ranges over [Refs.Changes], no watch is idle.
func WithIdle(d time.Duration) Option { return func(o *options) { o.idle = d } }

// WithNamespaceWatch has one watch for a namespace with n or more names, in place of one for each
// name. Below half as many, names get watches of their own again. Default 0: never.
//
// That watch brings the metadata of all objects of the namespace. An object is read, by its name,
// when the metadata shows that it has changed. A name then costs about 1 KB and no goroutine, but
// each change of any object of the namespace is received. It needs the right to watch all of the
// namespace; without it, or without a server that has watch lists, names keep their own watches.
//
// Metadata can have values: kubectl apply writes a whole Secret into an annotation. So with this
// option the memory of a program may hold, for a moment, values of other objects.
func WithNamespaceWatch(n int) Option { return func(o *options) { o.share = n } }

// WithLiveness sets how long a watch may bring nothing before it is given up and made again; see
// [reflector.WithLiveness]. Default 90 s.
func WithLiveness(d time.Duration) Option { return func(o *options) { o.liveness = d } }

// WithWatchTimeout asks the server to end each watch after a random time between d and twice d.
// Default 30 minutes.
func WithWatchTimeout(d time.Duration) Option { return func(o *options) { o.watchTimeout = d } }

// WithLogger logs to log. Default: the logger in Run's context, else klog's.
func WithLogger(log logr.Logger) Option {
	return func(o *options) { o.log = []reflector.Option{reflector.WithLogger(log)} }
}

// FromOwners keeps owners and names equal to the references of an informer's objects, while Run
// runs. The UID of an object is its owner. names is called on a goroutine of Run.
//
//	secrets := refs.New(source, refs.FromOwners(pods, refs.SecretsOf))
//
// Owners that are set by [Refs.SetOwner] stay as they are.
func FromOwners[O store.Object](of interface {
	Events(context.Context, ...informer.HandlerOption) iter.Seq[informer.Event[O]]
}, names func(O) Names) Option {
	return func(o *options) {
		o.feeds = append(o.feeds, func(ctx context.Context, set func(types.UID, Names)) {
			for event := range of.Events(ctx) {
				if event.Type == informer.Deleted {
					set(event.Old.GetUID(), nil)
				} else {
					set(event.New.GetUID(), names(event.New))
				}
			}
		})
	}
}

func apply(list []Option) options {
	o := defaults()
	o.missing = null.Options("refs", list, func(option Option) { option(&o) })
	return o
}

func (o options) validate() error {
	switch {
	case o.missing != nil:
		return o.missing
	case o.pace < 1:
		return fmt.Errorf("refs: WithPace(%d): give at least 1", o.pace)
	case o.idle < 0:
		return fmt.Errorf("refs: WithIdle(%s): give a positive duration, or 0 for never", o.idle)
	case o.share < 0:
		return fmt.Errorf("refs: WithNamespaceWatch(%d): give a number of names, or 0 for never", o.share)
	case o.liveness <= 0:
		return fmt.Errorf("refs: WithLiveness(%s): give a positive duration", o.liveness)
	case o.watchTimeout < time.Second:
		return fmt.Errorf("refs: WithWatchTimeout(%s): give at least a second", o.watchTimeout)
	}
	return nil
}
