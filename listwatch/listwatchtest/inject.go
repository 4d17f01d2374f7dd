package listwatchtest

import (
	"cmp"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tributary-go/tributary/internal/watchlist"
	"github.com/tributary-go/tributary/server/apiserver"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// The faults by name, as methods of the collection that is to fail.

// Disconnect breaks the connections of the lists and watches in flight, in mid-stream. If it
// strikes a new request, the answer begins and then breaks off.
func (c *Collection[T]) Disconnect(options ...FaultOption) *Fault {
	c.server.t.Helper()
	return c.inject("Disconnect", cut(), options)
}

// Mute makes the connections of the lists and watches in flight half-open: nothing comes any more,
// not even an end. A new request that it strikes is never answered. Muted connections last until
// the client gives them up.
func (c *Collection[T]) Mute(options ...FaultOption) *Fault {
	c.server.t.Helper()
	return c.inject("Mute", mute(), options)
}

// Expire makes every resource version and continue token so far too old, at once. Watches
// in flight end with a 410 inside the stream.
//
// If there was none, and on every repetition, the next request that needs the past gets the 410: a
// watch from a version, a list at an exact version, a further page.
func (c *Collection[T]) Expire(options ...FaultOption) *Fault {
	c.server.t.Helper()
	f := c.inject("Expire", effect{
		underWay: func(x *exchange) bool {
			x.standing = x.standing && x.Verb != Watch // the 410 is on its way
			return x.Verb == Watch
		},
		applies: needsPast,
		request: func(*exchange) bool {
			c.origin.Expire()
			return false
		},
	}, append(slices.Clone(options), func(f *Fault) { f.acted = true })) // as below
	c.origin.Expire()
	return f
}

// needsPast reports whether only the history can answer a request.
func needsPast(x *exchange) bool {
	o := x.Options
	named := o.ResourceVersion != "" && o.ResourceVersion != "0"
	if x.Verb == Watch {
		return named && !watchlist.Asked(o)
	}
	exact := o.ResourceVersionMatch == metav1.ResourceVersionMatchExact || o.ResourceVersionMatch == "" && o.Limit > 0
	return o.Continue != "" || named && exact
}

// Fail answers the next request of a verb with err. List covers watch lists, by which a reflector
// lists. An API status, such as those of the package apierrors, is sent as it is; any other error
// as a 500.
func (c *Collection[T]) Fail(verb Verb, err error, options ...FaultOption) *Fault {
	c.server.t.Helper()
	fail := func(*exchange) error { return err }
	return c.inject("Fail("+string(verb)+")", refuse(nil, fail), append(slices.Clone(options), On(verb)))
}

// Throttle answers the next list or watch with 429 and a Retry-After, in whole seconds; zero leaves
// Retry-After out. Clients of client-go obey it by themselves: they retry unseen by their users.
func (c *Collection[T]) Throttle(retryAfter time.Duration, options ...FaultOption) *Fault {
	c.server.t.Helper()
	seconds := int((retryAfter + time.Second - 1) / time.Second)
	return c.inject("Throttle", refuse(nil, func(*exchange) error {
		return apierrors.NewTooManyRequests("too many requests, by order of a test", seconds)
	}), options)
}

// Truncate breaks the connection in the middle of the next list, or of the next event of a watch.
func (c *Collection[T]) Truncate(options ...FaultOption) *Fault {
	c.server.t.Helper()
	return c.inject("Truncate", truncate(), options)
}

// Delay holds back by d the answer to the next list or watch, or the next event of a watch under
// way, whichever comes first. Later events wait behind it.
func (c *Collection[T]) Delay(d time.Duration, options ...FaultOption) *Fault {
	c.server.t.Helper()
	return c.inject("Delay", effect{
		request: func(x *exchange) bool {
			x.pause(d)
			return false
		},
		write: func(x *exchange, _ []byte) { x.pause(d) },
	}, options)
}

// Stale answers from the past: from a server that has restarted at the moment of the call and does
// not follow etcd any more. It strikes the next request that permits an old answer: a list at
// version 0 or not older than one, or a watch from 0 or a version. If [On] names Get, it also
// strikes a Get at a version.
//
// Requests wait in vain for versions that the past has not reached, and get a 410 for those before
// it. A request for the latest state gets it, as from a real server that lags. Lift ends the
// watches that follow the past.
func (c *Collection[T]) Stale(options ...FaultOption) *Fault {
	c.server.t.Helper()
	past := c.freeze()
	return c.inject("Stale", effect{
		applies: permitsPast,
		request: func(x *exchange) bool {
			x.answer = past
			return false
		},
		lift: past.Close,
	}, options)
}

// permitsPast reports whether a server that lags may answer a request.
func permitsPast(x *exchange) bool {
	o := x.Options
	return o.ResourceVersion != "" && o.ResourceVersionMatch != metav1.ResourceVersionMatchExact && o.Continue == ""
}

// freeze makes a server that keeps the collection's present state.
func (c *Collection[T]) freeze() *apiserver.Server {
	c.server.t.Helper()
	past, err := apiserver.NewServer(c.server.options...)
	if err != nil {
		c.server.t.Fatalf("listwatchtest: Stale: %v", err)
	}
	c.server.t.Cleanup(past.Close)
	content, err := watchcache.NewCache(c.resource.Kind, c.server.options...)
	if err == nil {
		now := c.origin.Snapshot()
		err = content.Replace(store.Items(now.Sorted()...), store.At(cmp.Or(now.ResourceVersion(), "1")))
	}
	if err != nil {
		c.server.t.Fatalf("listwatchtest: Stale: %v", err)
	}
	c.server.t.Cleanup(content.Close)
	apiserver.ServeCache(past, content, c.resource.View)
	return past
}

// NoWatchList refuses the next watch with sendInitialEvents (KEP-3157), as do servers with that
// feature off.
func (c *Collection[T]) NoWatchList(options ...FaultOption) *Fault {
	c.server.t.Helper()
	asks := func(x *exchange) bool { return x.Options.SendInitialEvents != nil }
	return c.inject("NoWatchList", refuse(asks, func(x *exchange) error {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "",
			validation.ValidateListOptions(&internalversion.ListOptions{
				Watch: true, ResourceVersion: x.Options.ResourceVersion,
				ResourceVersionMatch: x.Options.ResourceVersionMatch, SendInitialEvents: x.Options.SendInitialEvents,
			}, false))
	}), options)
}

func (c *Collection[T]) inject(name string, e effect, options []FaultOption) *Fault {
	c.server.t.Helper()
	return c.server.inject(&Fault{name: name, resource: c.resource.Kind.GroupVersionResource(), effect: e}, options)
}
