package watchcache

import "context"

// WaitFor returns once the cache has reached a resource version, but waits no longer than
// [WithFreshWait]. Errors are API status errors: 429 while the cache is empty, 504 if the version
// is not reached in time. The end of ctx is ctx's error.
func (c *Cache[T]) WaitFor(ctx context.Context, resourceVersion string) error {
	version, err := parseVersion("wait", resourceVersion)
	if err == nil {
		_, err = c.notOlderThan(ctx, version)
	}
	return err
}
