package watchcache

import (
	"fmt"
	"time"
)

// Option changes a [Cache], or every collection of a [Server].
type Option func(*config)

// config is what options change.
type config struct {
	window           int
	bookmarkInterval time.Duration
	freshWait        time.Duration
	revision         *Revision
}

func newConfig(options []Option) (config, error) {
	c := config{
		// A second of a large cluster's pod changes, and a few MB at most: an API server sizes its
		// own window between 100 and 100,000 events by the rate it sees.
		window: 1024,
		// What the API server does.
		bookmarkInterval: time.Minute,
		// What the API server does: longer than any watch lags behind, shorter than a client's
		// patience.
		freshWait: 3 * time.Second,
	}
	for _, option := range options {
		option(&c)
	}
	return c, c.validate()
}

func (c config) validate() error {
	if c.window < 1 {
		return fmt.Errorf("watchcache: WithWindow(%d): a window holds one event at least", c.window)
	}
	if c.bookmarkInterval <= 0 {
		return fmt.Errorf("watchcache: WithBookmarkInterval(%s): an interval is longer than zero", c.bookmarkInterval)
	}
	if c.freshWait < 0 {
		return fmt.Errorf("watchcache: WithFreshWait(%s): a wait is not negative", c.freshWait)
	}
	return nil
}

// WithWindow sets how many events a collection remembers. A watcher that falls further behind gets
// a 410 Expired error and must list again. The default is 1024; one event costs a few hundred
// bytes, the old version of its object, and its encodings once somebody has watched it over HTTP.
func WithWindow(events int) Option { return func(c *config) { c.window = events } }

// WithBookmarkInterval sets how often a watcher that asked for bookmarks gets one. The default is a
// minute, as the API server has it. Shorten it in tests.
func WithBookmarkInterval(d time.Duration) Option {
	return func(c *config) { c.bookmarkInterval = d }
}

// WithFreshWait sets how long a list waits for a resource version that the collection has not
// reached before it answers 504 "Too large resource version". The default is three seconds, as the
// API server has it; zero answers at once.
func WithFreshWait(d time.Duration) Option { return func(c *config) { c.freshWait = d } }

// WithRevision makes a cache the origin of its objects: it starts empty and complete, and its
// versions are counted by r, together with those of every other cache of r. Write to it within
// [Revision.Write] only.
func WithRevision(r *Revision) Option { return func(c *config) { c.revision = r } }

// Validate reports an option that is out of range, before there is a cache to give it to.
func Validate(options ...Option) error {
	_, err := newConfig(options)
	return err
}
