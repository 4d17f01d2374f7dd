package relay

import "github.com/tributary-go/tributary/server/watchcache"

// WithCache changes the caches of all copies.
func WithCache(list ...watchcache.Option) Option {
	return func(o *options) { o.cache = append(o.cache, list...) }
}
