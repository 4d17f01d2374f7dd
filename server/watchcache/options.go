package watchcache

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/tributary-go/tributary/internal/null"
)

// Option changes a [Cache], or every collection of a [Server].
type Option func(*config)

// config has the values that options change.
type config struct {
	window           int
	windowBytes      int64
	listBytes        int64
	bookmarkInterval time.Duration
	bookmarkFirst    bool
	freshWait        time.Duration
	revision         *Revision
	upstream         Upstream
}

func newConfig(options []Option) (config, error) {
	c := config{
		// The API server's most: what its window may grow to.
		window: 100 << 10,
		// Some thousand changes of usual pods.
		windowBytes: 48 << 20,
		// Some ten thousand usual pods in JSON and in protobuf.
		listBytes: 128 << 20,
		// As the API server does.
		bookmarkInterval: time.Minute,
		// As the API server does: longer than any watch lags behind, shorter than a client's
		// patience.
		freshWait: 3 * time.Second,
	}
	err := null.Options("watchcache", options, func(option Option) { option(&c) })
	return c, cmp.Or(err, c.validate())
}

func (c config) validate() error {
	if c.window < 1 {
		return fmt.Errorf("watchcache: WithWindow(%d): a window holds one event at least", c.window)
	}
	if c.windowBytes < 1 {
		return fmt.Errorf("watchcache: WithWindowBytes(%d): a window holds more than nothing", c.windowBytes)
	}
	if c.listBytes < 0 {
		return fmt.Errorf("watchcache: WithListBytes(%d): a bound is not negative", c.listBytes)
	}
	if c.bookmarkInterval <= 0 {
		return fmt.Errorf("watchcache: WithBookmarkInterval(%s): an interval is longer than zero", c.bookmarkInterval)
	}
	if c.freshWait < 0 {
		return fmt.Errorf("watchcache: WithFreshWait(%s): a wait is not negative", c.freshWait)
	}
	if c.upstream != nil && c.revision != nil {
		return errors.New("watchcache: WithUpstream and WithRevision: a cache is a copy or an origin, not both")
	}
	return nil
}

// WithWindow sets how many events a collection remembers at most. A watcher that falls further
// behind gets a 410 Expired error and must list again. Only the events that its selection sees
// count. The default is 102,400.
//
// The window grows and shrinks with the rate of writes: events are remembered for 75 seconds, as by
// the API server, and the newest 1,024 for longer.
func WithWindow(events int) Option { return func(c *config) { c.window = events } }

// WithWindowBytes bounds what a collection keeps beside its present objects, in bytes: half of it
// for the old versions of objects in the window, a quarter for encoded events, and a quarter for
// the events that slow watchers have still to read after the window has dropped them. An old
// version counts as its successor's length on the wire, where the source tells that, else as its
// own length in protobuf, or in JSON if its type has no other. Encodings over the bound are made
// again for watchers that come late. The newest event always stays. The default is 48 MiB.
func WithWindowBytes(bytes int64) Option { return func(c *config) { c.windowBytes = bytes } }

// WithListBytes bounds the encoded objects, and what is compressed of them, that lists and initial
// events of the whole collection share, in bytes. They are made by the first reader of a state, and
// taken over into the next state for objects that have not changed. They last while a reader is at
// work, and for two seconds after the last one has come. The bound is for each state: a slow reader
// keeps the encodings of the state that it is being sent. The default is 128 MiB; zero encodes anew
// for each reader.
func WithListBytes(bytes int64) Option { return func(c *config) { c.listBytes = bytes } }

// WithBookmarkInterval sets how often a watcher that asked for bookmarks gets one. The default is a
// minute, as the API server has it. Shorten it in tests.
func WithBookmarkInterval(d time.Duration) Option {
	return func(c *config) { c.bookmarkInterval = d }
}

// WithBookmarkFirst has a watch from a version begin with a bookmark, if it wants bookmarks. A
// reflector of client-go lists again if a watch is cut within a second, and no event has come.
func WithBookmarkFirst() Option { return func(c *config) { c.bookmarkFirst = true } }

// WithFreshWait sets how long a list waits for a resource version that the collection has not
// reached before it answers 504 "Too large resource version". The default is three seconds, as the
// API server has it; zero answers at once. A list that names no version, and whose context has a
// deadline, waits until that: the API server does, and so does package apiserver.
func WithFreshWait(d time.Duration) Option { return func(c *config) { c.freshWait = d } }

// WithUpstream has a list, a get or a watch with initial events that names no version wait for
// proof that the cache holds every write that u had made before, as KEP-2340 does. Readers that
// wait share one question. A reader that waits for a version has u asked for a proof, too: the
// version may be that of another collection. The default is no proof: what names no version gets
// the present copy.
func WithUpstream(u Upstream) Option { return func(c *config) { c.upstream = u } }

// WithRevision makes a cache the origin of its objects: it starts empty and complete, and its
// versions are counted by r, together with those of every other cache of r. Write to it within
// [Revision.Write] only.
func WithRevision(r *Revision) Option { return func(c *config) { c.revision = r } }

// Validate reports an option that is out of range, before there is a cache to give it to.
func Validate(options ...Option) error {
	_, err := newConfig(options)
	return err
}
