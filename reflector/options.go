package reflector

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/tributary-go/tributary/internal/null"
	"github.com/tributary-go/tributary/internal/pace"
)

// Option changes how a reflector works. The defaults suit a node agent and a controller alike.
type Option func(*options)

type options struct {
	missing        error        // options that are nil
	log            *logr.Logger // nil: the context's
	metrics        Metrics
	liveness       time.Duration
	backoffInitial time.Duration
	backoffLimit   time.Duration
	watchTimeout   time.Duration
	pageSize       int64
	proof          time.Duration
	stopOnFinal    bool
	cachedFirst    bool
	resume         bool
}

// defaults, with their reasons.
func defaults() options {
	return options{
		metrics:        noMetrics{},
		liveness:       90 * time.Second, // bookmarks come about once a minute
		backoffInitial: pace.Initial,
		backoffLimit:   pace.Limit,
		// To twice that: connections spread over a server's instances.
		watchTimeout: 5 * time.Minute,
		proof:        time.Minute, // with the next bookmark, a copy is proven within two
	}
}

// WithLogger logs to log: failures that a person must mend as errors, other changes (listed,
// failing, well again) at level 0, each request at level 2. A failure is logged once and not for
// each attempt. Default: client-go's convention, which is the logger in Run's context, else klog's.
// WithLogger(logr.Discard()) silences a reflector.
func WithLogger(log logr.Logger) Option { return func(o *options) { o.log = &log } }

// WithMetrics reports to m. Default: nowhere.
func WithMetrics(m Metrics) Option { return func(o *options) { o.metrics = m } }

// WithLiveness sets how long a stream may bring nothing before it is given up and resumed. Default
// 90 s. A new watch gets twice as long until its first event or bookmark, because a server that has
// just started sends its first bookmark late. Lower values suit collections with many events and
// servers that send bookmarks more often than once a minute; else they only cost reconnects.
//
// Over HTTP/2 the watches of a client share one connection. If that is dead, client-go finds it by
// a ping after 30 s plus 15 s, before the default is over. A shorter liveness finds the silence
// sooner, but the next request goes over the same connection until the ping has ended it: the
// environment's HTTP2_READ_IDLE_TIMEOUT_SECONDS and HTTP2_PING_TIMEOUT_SECONDS, or HTTP/1.1, make
// that as short.
func WithLiveness(d time.Duration) Option { return func(o *options) { o.liveness = d } }

// WithBackoff sets the delay after the first failure, and the longest one. Each failure doubles it;
// the actual delay is random between zero and that. Default 0.8 s and 30 s.
func WithBackoff(initial, limit time.Duration) Option {
	return func(o *options) { o.backoffInitial, o.backoffLimit = initial, limit }
}

// WithResume says that the content that the store has when Run begins is a whole state of this
// collection, of an earlier run: Run begins with a watch from its version, and not with a list. The
// store must have snapshots ([store.Snapshotter]), and a watchcache.Journal restores such a state.
// If the store is empty, the option has no effect.
//
// The copy is synced from the beginning, and not right ([MayBeOld]): [Reflector.Ready] fails until
// a consistent answer of the server has proven it. That is asked for at once, beside the watch, and
// compares an object held with the server's. On any doubt, such as a version that the server no
// longer has, or another history, the server's newest state is listed.
func WithResume() Option { return func(o *options) { o.resume = true } }

// WithWatchTimeout asks the server to end each watch after a random time between d and twice d, so
// that long-lived connections spread over its instances. In whole seconds, default 5 min.
func WithWatchTimeout(d time.Duration) Option { return func(o *options) { o.watchTimeout = d } }

// WithPageSize lists in pages of n objects at the latest version, and never by a watch list: less
// memory on an old server, more load on its etcd. Default 0: a watch list; if that fails, a LIST in
// pages of 500 for the first state, and one from the server's cache, not older than the copy, for
// later ones.
func WithPageSize(n int64) Option { return func(o *options) { o.pageSize = n } }

// WithProof sets how often the server is asked for its version, by a LIST of one object: a probe.
// Default one minute: 60 requests an hour. A copy is proven once it has reached that version, which
// a quiet collection does at the next bookmark. So a healthy copy's proof is at most two minutes
// old; a shorter time brings that down to the minute between two bookmarks.
func WithProof(every time.Duration) Option { return func(o *options) { o.proof = every } }

// WithFinalErrors makes Run return on 401, 403 and 404, which the client cannot mend. Default: they
// show in Status and are tried again, slowly.
func WithFinalErrors() Option { return func(o *options) { o.stopOnFinal = true } }

// WithCachedFirstList lets the LIST that follows a failed watch list read the first state from the
// server's cache (resourceVersion 0, or not older than the content that the store held before): it
// costs etcd nothing, and a server that is cut off from etcd answers it. It may be older than the
// truth by any time. The copy is not right ([MayBeOld]), and [Reflector.Ready] fails, until it has
// reached the version of a consistent answer, which is asked for at once. Default: the first state
// is the server's newest, and the reflector waits for a server that cannot tell it. No effect
// beside WithPageSize.
func WithCachedFirstList() Option { return func(o *options) { o.cachedFirst = true } }

func apply(list []Option) options {
	o := defaults()
	o.missing = null.Options("reflector", list, func(option Option) { option(&o) })
	return o
}

// Validate returns an error if a reflector would not run with a list of options, else nil. The
// error names each such option and a value to give instead. Validate is for code that takes options
// now and makes reflectors later; [Reflector.Run] validates by itself.
func Validate(optionList ...Option) error { return apply(optionList).validate() }

func (o options) validate() error {
	all := []error{o.missing}
	refuse := func(bad bool, format string, values ...any) {
		if bad {
			all = append(all, fmt.Errorf("reflector: "+format, values...))
		}
	}
	refuse(o.liveness <= 0, "WithLiveness(%s): give a positive duration", o.liveness)
	refuse(o.backoffInitial <= 0 || o.backoffLimit < o.backoffInitial, "WithBackoff(%s, %s): give a positive delay and a limit not below it", o.backoffInitial, o.backoffLimit)
	refuse(o.watchTimeout < time.Second, "WithWatchTimeout(%s): give at least a second", o.watchTimeout)
	refuse(o.proof < probePause, "WithProof(%s): give at least %s", o.proof, probePause)
	refuse(o.pageSize < 0, "WithPageSize(%d): give 0 or more", o.pageSize)
	refuse(null.Is(o.metrics), "WithMetrics(nil): leave the option out")
	return errors.Join(all...)
}

type noMetrics struct{}

func (noMetrics) ListEnded(ListStats)   {}
func (noMetrics) WatchEnded(WatchStats) {}
