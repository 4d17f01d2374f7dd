package apiserver

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tributary-go/tributary/listwatch"
	"github.com/tributary-go/tributary/server/watchcache"
	"github.com/tributary-go/tributary/store"
)

// serveWatch streams events until the client goes, the timeout is over, or the server closes. A
// version that is too old, or a later error, comes as an ERROR event inside the stream, as
// from the API server.
func (e *resourceEndpoint[T]) serveWatch(c call, r watchcache.Request) error {
	if c.format.contentType(true) == "" {
		return notAcceptable(strings.Join([]string{jsonType, protobufEncoding{}.contentType(true)}, ", "))
	}
	r.TimeoutSeconds = watchSeconds(r.TimeoutSeconds)
	w, err := e.cache.Watcher(r)
	if err != nil && (e.serving.refuse || !apierrors.IsResourceExpired(err)) {
		return err
	}
	stream := eventStream[T]{codec: &e.codec, format: c.format, key: e.codec.keyOf(c.format), ended: e.ended}
	if isWebSocket(c.request) {
		*c.watch = preparedWatch{ended: e.ended, run: func(ctx context.Context) {
			c.overWebSocket(ctx, func(ctx context.Context, socket io.Writer) {
				stream.to = messageSink{socket}
				stream.run(ctx, w, err)
			})
		}}
		return nil
	}
	c.Header().Set("Content-Type", c.format.contentType(true))
	c.Header().Set("Cache-Control", "no-cache, private")
	c.WriteHeader(http.StatusOK)
	control := http.NewResponseController(c.ResponseWriter)
	stream.to = responseSink{c.ResponseWriter, control}
	// The client learns that the watch stands before there is any event.
	began := time.Now()
	_ = control.SetWriteDeadline(began.Add(writePatience))
	if flushed := control.Flush(); flushed != nil {
		if err == nil && tooSlow(outOfPatience(began, flushed)) {
			w.CountUnread()
		}
		return nil
	}
	_ = control.SetWriteDeadline(time.Time{})
	*c.watch = preparedWatch{ended: e.ended, run: func(ctx context.Context) { stream.run(ctx, w, err) }}
	return nil
}

// RefuseForgottenWatches answers a watch of a version that is too old with the code 410. The
// default is an ERROR event in the stream, as from the API server. It is for a handler in front,
// which has the request answered elsewhere.
func RefuseForgottenWatches() ServeOption { return func(s *serving) { s.refuse = true } }

// eventStream writes events to one client.
type eventStream[T store.Object] struct {
	codec  *codec[T]
	format format
	key    any // of shared frames, boxed once
	to     sink
	ended  context.Context // the resource is served no more
}

// sink takes the frames of a batch, in order. They are read-only, and it keeps none of them. An
// error means that the stream is over: the client is too slow, see tooSlow, or has gone.
type sink interface {
	write(frames [][]byte) error
}

// run sends the watcher's events until either has an end, and closes it. A watcher that could not
// begin has an error.
func (s *eventStream[T]) run(ctx context.Context, w *watchcache.Watcher[T], err error) {
	if err == nil {
		defer w.Close()
	}
	var sent error
	for err == nil && sent == nil {
		var events []watchcache.Delivery[T]
		events, err = w.Next(ctx)
		if err == nil && len(events) == 0 {
			s.farewell(ctx, w)
			return
		}
		sent = s.send(events)
	}
	switch {
	case tooSlow(sent):
		w.CountUnread()
	case sent == nil && s.ended.Err() == nil: // else its cache may be closed, which is no news
		s.fail(err)
	}
}

// farewell ends the watch of a server that closes with what its client has still to be told, or
// with a bookmark. A reflector of client-go lists again after a watch that has lasted less than a
// second, if no event has come.
func (s *eventStream[T]) farewell(ctx context.Context, w *watchcache.Watcher[T]) {
	if context.Cause(ctx) == errClosed {
		_ = s.send(w.Last()) // the stream ends here in any case
	}
}

// send writes events, in batches of at most batchBytes and one frame. An error means that the
// client has gone or is too slow, or that an object cannot be encoded: the stream is over.
func (s *eventStream[T]) send(events []watchcache.Delivery[T]) error {
	encode := func(e listwatch.Event[T]) ([]byte, error) { return s.codec.event(s.format, e) }
	b := batches.Get().(*batch)
	defer b.giveBack()
	for _, e := range events {
		frame, err := s.frame(e, encode)
		if err != nil {
			_ = b.writeTo(s.to) // the stream ends here in any case
			s.fail(err)
			return err
		}
		if b.add(frame); b.size < batchBytes {
			continue
		}
		if err := b.writeTo(s.to); err != nil {
			return err
		}
	}
	return b.writeTo(s.to)
}

// frame is an event in the bytes that its watchers share. A table's are its own: its rows say how
// old their objects are now, and the first one alone names the columns.
func (s *eventStream[T]) frame(e watchcache.Delivery[T], encode func(listwatch.Event[T]) ([]byte, error)) ([]byte, error) {
	if s.format.view != asTable {
		return e.Encoded(s.key, encode)
	}
	frame, err := encode(e.Event)
	s.format.headless = true
	return frame, err
}

// batchBytes is how many bytes of frames are kept for a client that may be slow.
const batchBytes = 1 << 20

// batch is frames that are written together.
type batch struct {
	frames [][]byte
	size   int // of all frames, in bytes
}

var batches = sync.Pool{New: func() any { return &batch{} }}

func (b *batch) add(frame []byte) {
	b.frames = append(b.frames, frame)
	b.size += len(frame)
}

// writeTo writes the frames, and empties the batch.
func (b *batch) writeTo(to sink) error {
	if len(b.frames) == 0 {
		return nil
	}
	defer b.reset()
	return to.write(b.frames)
}

func (b *batch) reset() {
	clear(b.frames)
	b.frames, b.size = b.frames[:0], 0
}

func (b *batch) giveBack() {
	b.reset()
	batches.Put(b)
}

// fail ends the stream with an ERROR event.
func (s *eventStream[T]) fail(cause error) {
	doc, err := statusDocument(s.format, statusOf(cause))
	if err != nil {
		return
	}
	if frame, err := s.format.frame(watch.Error, doc); err == nil {
		_ = s.to.write([][]byte{frame}) // the stream ends here in any case
	}
}

// responseSink writes to an HTTP response.
type responseSink struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (s responseSink) write(frames [][]byte) error {
	began := time.Now()
	return outOfPatience(began, s.writeUntil(began.Add(writePatience), frames))
}

func (s responseSink) writeUntil(deadline time.Time, frames [][]byte) error {
	// Not every ResponseWriter has deadlines; without one, a dead client costs a goroutine until
	// TCP notices. The deadline is for this batch: left standing, it would end an idle stream of
	// HTTP/2.
	_ = s.control.SetWriteDeadline(deadline)
	defer s.control.SetWriteDeadline(time.Time{})
	burst := bursts.Get().(*bufio.Writer)
	burst.Reset(s.ResponseWriter)
	for _, frame := range frames {
		if _, err := burst.Write(frame); err != nil {
			return err
		}
	}
	if err := burst.Flush(); err != nil {
		return err
	}
	burst.Reset(nil)
	bursts.Put(burst)
	return s.control.Flush()
}

// bursts are buffers in which the events of a batch become one write, as far as they fit. Like all
// memory that an answer is written from, one is used again only after a write without an error: an
// HTTP/2 server returns from a write as soon as the stream has ended, and may still read its bytes.
var bursts = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeBuffer) }}

// messageSink writes to a web socket: each frame is a message.
type messageSink struct{ io.Writer }

func (s messageSink) write(frames [][]byte) error {
	for _, frame := range frames {
		began := time.Now()
		if _, err := s.Write(frame); err != nil {
			return outOfPatience(began, err)
		}
	}
	return nil
}
