package watchcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/tributary-go/tributary/internal/ownfile"
	"github.com/tributary-go/tributary/internal/pace"
	"github.com/tributary-go/tributary/store"
)

// Journal keeps the content and the window of a [Cache] in a file, so that they outlive the
// process: the next one goes on at the version where this one ended, and the watches of its clients
// find their events. Make one with [OpenJournal].
//
// A write to the cache never waits for the disk. A goroutine, that of [Journal.Run], reads the
// window as a watcher of everything does, and appends to the file. If it falls behind the window,
// or if a write fails, the file begins anew with the whole content; meanwhile the cache goes on,
// and [Journal.Status] says so.
//
// The file holds the objects as they are, Secrets too: its mode is 0600. Leave a kind out by not
// opening a journal for it. An object that is deleted leaves the file when it is written anew,
// which is once the changes are twice as long as the content.
type Journal[T store.Object] struct {
	cache    *Cache[T]
	codec    codec[T]
	identity string
	path     string
	least    int64 // of changes, in bytes: see isLong
	ran      atomic.Bool

	// Of OpenJournal, then of Run's goroutine.
	lock     *os.File       // nil while another process writes the file
	writes   *generation[T] // the file that is written now; nil if there is none
	failing  error          // why the file is to be begun anew; nil if it is well
	failures int            // in a row
	again    time.Time      // when it may be begun anew

	mu     sync.Mutex // guards status
	status JournalStatus
}

// JournalStatus is the state of a [Journal].
type JournalStatus struct {
	// Path is that of the file.
	Path string
	// Restored is the version that the cache had after [OpenJournal]; empty if there was no file,
	// or if it was not used: then Unused says why.
	Restored string
	Unused   error
	// Version is the version up to which the file has everything, and Bytes is its length. Both are
	// empty before the file has been written.
	Version string
	Bytes   int64
	// Err is why the file cannot be written now, or what it lost last time; Since is the time of
	// the first such failure in a row. Nil while all is well.
	Err   error
	Since time.Time
}

// OpenJournal opens the journal of an empty cache in a folder, which is made if it is missing, and
// fills the cache from it. Call it before anybody reads or writes the cache. Then call
// [Journal.Run], and start the reflector with reflector.WithResume: it begins with a watch at the
// version that the cache has, or with a list if that is empty.
//
// The name of the file is that of the kind: pods.v1.journal. identity says of which upstream the
// objects are, such as its URL, and which of them the reflector selects. Two identities need two
// folders, else each finds the other's file.
//
// A file whose content is damaged, or of another kind, identity or format, is not used:
// [JournalStatus.Unused] says so, the cache stays empty, and Run replaces the file. The changes
// behind the content end before the first that is damaged, or was not completed. From here until
// Run ends no other process writes the file. OpenJournal fails if the folder cannot be made, and on
// a cache that is filled already, or is an origin (see [WithRevision]).
func OpenJournal[T store.Object](c *Cache[T], folder, identity string) (*Journal[T], error) {
	gvr := c.kind.GroupVersionResource()
	name := gvr.Resource + "." + gvr.Version
	if gvr.Group != "" {
		name += "." + gvr.Group
	}
	j := &Journal[T]{cache: c, codec: newCodec(c.kind), identity: identity, least: journalLeast, path: filepath.Join(folder, url.QueryEscape(name)+".journal")}
	j.status.Path = j.path
	switch _, err := c.latest(); {
	case c.revision != nil:
		return nil, fmt.Errorf("watchcache: journal %s: the cache is an origin, with a Revision: a journal is for copies", j.path)
	case err == nil:
		return nil, fmt.Errorf("watchcache: journal %s: the cache is filled already: open the journal first", j.path)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("watchcache: journal %s: the folder cannot be made: %w", j.path, ownfile.WithoutPath(err))
	}
	j.claim()
	if err := j.open(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.status.Unused = fmt.Errorf("watchcache: journal %s is not used: %w", j.path, err)
	}
	return j, nil
}

// open restores the cache, and goes on with the file unless another process writes it.
func (j *Journal[T]) open() error {
	file, info, err := ownfile.Open(j.path)
	if err != nil {
		return cmp.Or(ownfile.WithoutPath(err), err)
	}
	defer file.Close()
	c := j.cache
	base, whole, err := c.restore(file, info.Size(), j.codec, j.identity)
	if err != nil {
		return err
	}
	j.status.Restored = c.ResourceVersion()
	j.status.Version, j.status.Bytes = j.status.Restored, whole
	if j.lock == nil {
		return nil
	}
	g := &generation[T]{
		cache: c, codec: j.codec, base: base, size: whole,
		position: c.window.Next(), begun: c.window.cleared, version: c.contentVersion(),
	}
	if n := len(c.window.gaps); n > 0 {
		g.gaps = c.window.gaps[n-1].to
	}
	if g.file, err = os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return nil // Run begins another one
	}
	j.writes = g
	return g.file.Truncate(whole)
}

// Status is the present state. It does not block.
func (j *Journal[T]) Status() JournalStatus {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.status
}

const (
	// journalPause is the least time between two writes to the file: the changes of a burst share
	// one.
	journalPause = 5 * time.Millisecond
	// journalRetry is the time after a failure until the file is begun anew.
	journalRetry = time.Second
	journalLimit = time.Minute // at most, while it goes on failing
)

// Run writes the journal until ctx ends, or the cache is closed. Then it writes what is missing,
// and returns once that is on the disk. No failure of the disk ends it: the logger of ctx, or
// klog's, is told when the file cannot be written, and when it can be again. Call it once; it fails
// on a second call.
func (j *Journal[T]) Run(ctx context.Context) error {
	if j.ran.Swap(true) {
		return errors.New("watchcache: Journal.Run was called twice: open the journal anew for another cache")
	}
	defer j.close()
	for {
		changed := j.cache.changed.Wait()
		over := ctx.Err() != nil || j.cache.work.over.Load()
		j.write(ctx, over)
		j.show(klog.FromContext(ctx))
		if over {
			return nil
		}
		if !pace.Sleep(ctx, journalPause) {
			continue
		}
		var again <-chan time.Time
		if j.failing != nil {
			again = time.After(time.Until(j.again))
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
		}
	}
}

// write brings the file up to date. At the end, no new file is begun.
func (j *Journal[T]) write(ctx context.Context, over bool) {
	if !j.claim() {
		return
	}
	if err := j.follow(); err != nil {
		j.failed(err)
	}
	switch g := j.writes; {
	case over && g != nil:
		if err := g.file.Sync(); err != nil {
			j.failed(err)
		}
	case over, g != nil && !g.isLong(j.least), time.Now().Before(j.again):
	default:
		if err := j.begin(ctx); err != nil {
			j.failed(err)
			return
		}
		j.failing, j.failures = nil, 0
	}
}

// claim makes the file this process's.
func (j *Journal[T]) claim() (ok bool) {
	if j.lock != nil || time.Now().Before(j.again) {
		return j.lock != nil
	}
	var err error
	if j.lock, err = ownfile.Lock(j.path); err != nil {
		j.failed(err)
	}
	return err == nil
}

// failed notes a failure, after which the file is begun anew.
func (j *Journal[T]) failed(err error) {
	j.failing = ownfile.WithoutPath(err)
	j.again = time.Now().Add(pace.Doubled(journalRetry, journalLimit, j.failures))
	j.failures++
}

// show makes the state visible, and logs the begin and the end of a failure.
func (j *Journal[T]) show(log klog.Logger) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := &j.status
	if g := j.writes; g != nil {
		s.Version, s.Bytes = formatVersion(g.version), g.size
	}
	switch was := s.Err; {
	case j.failing != nil:
		s.Err = fmt.Errorf("watchcache: journal %s: %w", j.path, j.failing)
		if was == nil {
			s.Since = time.Now()
			log.Error(s.Err, "The journal cannot be written: a restart may go on from an old state")
		}
	case was != nil:
		log.Info("The journal is written again", "path", j.path, "failed", time.Since(s.Since).String())
		s.Err, s.Since = nil, time.Time{}
	}
}

func (j *Journal[T]) close() {
	if j.writes != nil {
		_ = j.writes.file.Close() // it is synced
	}
	if j.lock != nil {
		_ = j.lock.Close()
	}
}
