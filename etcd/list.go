package etcd

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tributary-go/tributary/internal/pagetoken"
	"github.com/tributary-go/tributary/internal/sharing"
	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/store"
)

// Pages of an unlimited list are sized by the bytes of the pages before. Each is a part of what has
// been read so far: for each page an etcd before 3.7 counts all keys behind it, so that pages of
// one size would make the time of a list grow with the square of its length. And no page is large
// beside its collection.
const (
	firstPage   = 100
	maxPage     = 50_000
	pagePart    = 4       // one page is at most this part of what has been read, in bytes,
	leastTarget = 2 << 20 // but this at least
	mostTarget  = 16 << 20
)

// span is a range of keys at one revision.
type span struct {
	start, end   string
	revision     int64 // 0: the latest
	limit        int64 // 0: none
	serializable bool  // answered by one member, which may be behind
}

// chunk is a part of a range that has arrived.
type chunk struct {
	entries  []entry
	buffer   received // in which the entries lie, if they do
	revision int64    // of the range; 0 if it is not known yet
	cluster  uint64   // the ID of the etcd cluster; 0 if it is not known yet
	last     bool
	count    int64 // of the keys from the chunk's first one to the range's end, of a limited range
	err      error
}

// list answers a LIST.
func (s *Source[T]) list(ctx context.Context, options metav1.ListOptions, meta *metav1.ListMeta, yield func(T, error) bool) error {
	r, err := s.request(options)
	if err != nil {
		return err
	}
	whole, token, err := s.span(&r)
	if err != nil {
		return err
	}
	if r.Continue == "" {
		s.decoder.begin()
	}
	s.wake()
	read := reading[T]{source: s, request: &r, yield: yield}
	if r.Limit > 0 {
		err = read.limited(ctx, whole)
	} else {
		err = read.all(ctx, whole)
	}
	if err != nil {
		return s.listError(ctx, err, &r, whole, token)
	}
	notOlder := r.version > 0 && whole.revision == 0
	if notOlder && read.revision < r.version {
		return tooLarge(r.version, read.revision)
	}
	meta.ResourceVersion = strconv.FormatInt(read.revision, 10)
	if read.more {
		meta.Continue = pagetoken.After(strings.TrimPrefix(read.lastKey, s.prefix), read.revision).String()
		if !r.selective() {
			meta.RemainingItemCount = &read.remaining
		}
	}
	return nil
}

// span is the range that a request reads.
func (s *Source[T]) span(r *request[T]) (whole span, token pagetoken.Token, err error) {
	whole = span{start: s.prefix, end: clientv3.GetPrefixRangeEnd(s.prefix)}
	if r.Continue != "" {
		if token, err = pagetoken.Parse(r.Continue); err != nil {
			return whole, token, badRequest("invalid continue token: %v", err)
		}
		whole.start += token.Start
		whole.revision = max(token.Version, 0)
		return whole, token, nil
	}
	switch {
	case r.ResourceVersion == "0":
		whole.serializable = true
		r.Limit = 0 // a list at any version comes whole, as out of the API server's cache
	case r.ResourceVersionMatch == metav1.ResourceVersionMatchExact,
		// Before there was a match parameter, pages were exact.
		r.ResourceVersionMatch == "" && r.Limit > 0:
		whole.revision = r.version
	}
	return whole, token, nil
}

// listError gives the versions in an error their meaning.
func (s *Source[T]) listError(ctx context.Context, err error, r *request[T], whole span, token pagetoken.Token) error {
	switch {
	case is(err, rpctypes.ErrCompacted) && r.Continue != "":
		token.Version = pagetoken.Latest
		return pageCompacted(whole.revision, token.String())
	case is(err, rpctypes.ErrCompacted):
		return compacted(whole.revision)
	case is(err, rpctypes.ErrFutureRev):
		return tooLarge(whole.revision, s.current(ctx))
	}
	return StatusOf(ctx, err)
}

// current is etcd's revision, or 0 if it cannot be read.
func (s *Source[T]) current(ctx context.Context) int64 {
	answer, err := s.client.Get(ctx, s.prefix) // there is no such key
	if err != nil {
		return 0
	}
	return answer.Header.Revision
}

// reading is a range on its way to the reader.
type reading[T store.Object] struct {
	source  *Source[T]
	request *request[T]
	yield   func(T, error) bool

	revision  int64
	cluster   uint64
	count     int64
	bytes     int
	lastKey   string
	more      bool
	remaining int64
	locked    *encryptedError // the first value for which there is no key
}

// all reads a range to its end.
func (r *reading[T]) all(ctx context.Context, whole span) error {
	err := r.source.chunks(ctx, whole, func(c chunk) error {
		r.revision, r.cluster = max(r.revision, c.revision), max(r.cluster, c.cluster)
		if c.buffer.Buffer != nil {
			defer c.buffer.Free()
		}
		return r.items(c.entries)
	})
	if err == nil {
		r.source.decoder.listed(int(r.count), r.bytes)
		r.source.small.Store(r.count > 0 && int64(r.bytes) < r.count*smallValue)
		r.source.cluster.Store(r.cluster)
		if whole.revision == 0 {
			r.source.locked.Store(r.locked)
		}
	}
	return err
}

// limited reads until as many objects as the request asks for have been selected.
func (r *reading[T]) limited(ctx context.Context, whole span) error {
	whole.limit = r.request.Limit
	for {
		c, err := r.source.page(ctx, whole)
		if err != nil {
			return err
		}
		r.revision = c.revision
		for i, e := range c.entries {
			if err := r.item(e, r.decode(e)); err != nil {
				return err
			}
			if r.count == r.request.Limit {
				r.remaining = c.count - int64(i+1)
				r.more = r.remaining > 0
				return nil
			}
		}
		if c.last {
			return nil
		}
		whole.start, whole.revision = string(c.entries[len(c.entries)-1].key)+"\x00", c.revision
		whole.limit = min(whole.limit*2, maxPage) // much is not selected
	}
}

// decoded is an object of a list, or why there is none.
type decoded[T store.Object] struct {
	obj T
	err error
}

func (r *reading[T]) decode(e entry) (d decoded[T]) {
	key := r.source.key(e.key)
	if d.obj, d.err = r.source.decoder.object(key, e.value, e.revision, sharing.Last{}); d.err != nil {
		d.err = &listwatch.DecodeError{Op: "list", Object: key, Err: d.err}
	}
	return d
}

// items decodes entries, several at once, and yields the objects that are selected.
func (r *reading[T]) items(entries []entry) error {
	all := make([]decoded[T], len(entries))
	together(len(entries), func(i int) { all[i] = r.decode(entries[i]) })
	for i, e := range entries {
		if err := r.item(e, all[i]); err != nil {
			return err
		}
	}
	return nil
}

// item yields the object of an entry if it is selected.
func (r *reading[T]) item(e entry, d decoded[T]) error {
	r.lastKey = string(e.key)
	r.bytes += len(e.value)
	if r.locked == nil && d.err != nil {
		r.locked = lockedBy(d.err)
	}
	if d.err == nil && !r.request.matches(d.obj) {
		return nil
	}
	r.count++
	if !r.yield(d.obj, d.err) {
		return errStopped
	}
	return nil
}

// chunks reads a whole range, while use decodes the values that have come.
func (s *Source[T]) chunks(ctx context.Context, whole span, use func(chunk) error) error {
	ctx, cancel := context.WithCancel(ctx)
	arrived := make(chan chunk, 1) // one is decoded, one waits, one arrives
	var fetching sync.WaitGroup
	defer fetching.Wait()
	defer cancel()
	fetching.Go(func() {
		defer close(arrived)
		hand := func(c chunk) bool {
			select {
			case arrived <- c:
				return true
			case <-ctx.Done():
				return false
			}
		}
		err := s.stream(ctx, whole, hand)
		if codeOf(err) == codes.Unimplemented { // before etcd 3.7
			err = s.pages(ctx, whole, hand)
		}
		if err != nil {
			hand(chunk{err: err})
		}
	})
	for c := range arrived {
		if c.err != nil {
			return c.err
		}
		if err := use(c); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// stream reads a range by RangeStream. Only its last answer has a header.
func (s *Source[T]) stream(ctx context.Context, whole span, hand func(chunk) bool) error {
	answers, err := etcdserverpb.NewKVClient(s.client.ActiveConnection()).RangeStream(ctx, &etcdserverpb.RangeRequest{
		Key: []byte(whole.start), RangeEnd: []byte(whole.end), Revision: whole.revision, Serializable: whole.serializable,
	}, receiveInPlace, anySize)
	if err != nil {
		return err
	}
	ended := false
	for {
		var c chunk
		err := answers.RecvMsg(&c.buffer)
		switch {
		case errors.Is(err, io.EOF) && !ended:
			return io.ErrUnexpectedEOF
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		var header *etcdserverpb.ResponseHeader
		if c.entries, header, err = readAnswer(c.buffer.ReadOnlyData()); err != nil {
			return err
		}
		if header != nil && header.Revision > 0 {
			c.revision, c.cluster, ended = header.Revision, header.ClusterId, true
			if whole.revision > 0 {
				c.revision = whole.revision // the header has the latest
			}
		}
		if !hand(c) {
			return ctx.Err()
		}
	}
}

// pages reads a range in pages.
func (s *Source[T]) pages(ctx context.Context, whole span, hand func(chunk) bool) error {
	whole.limit = firstPage
	bytes := int64(0) // so far
	for {
		c, err := s.page(ctx, whole)
		if err != nil {
			return err
		}
		if !hand(c) {
			return ctx.Err()
		}
		if c.last {
			return nil
		}
		size := int64(1)
		for _, e := range c.entries {
			size += int64(len(e.value))
		}
		bytes += size
		target := min(max(bytes/pagePart, leastTarget), mostTarget)
		whole.limit = min(max(1, target*int64(len(c.entries))/size), maxPage)
		whole.start, whole.revision = string(c.entries[len(c.entries)-1].key)+"\x00", c.revision
	}
}

// page reads one page. All pages show the revision of the first one.
func (s *Source[T]) page(ctx context.Context, at span) (c chunk, err error) {
	options := []clientv3.OpOption{clientv3.WithRange(at.end), clientv3.WithLimit(at.limit), clientv3.WithRev(at.revision)}
	if at.serializable {
		options = append(options, clientv3.WithSerializable())
	}
	answer, err := s.client.Get(ctx, at.start, options...)
	if err != nil {
		return c, err
	}
	c = chunk{entries: entriesOf(answer.Kvs), revision: at.revision, cluster: answer.Header.ClusterId, last: !answer.More, count: answer.Count}
	if c.revision == 0 {
		c.revision = answer.Header.Revision
	}
	return c, nil
}
