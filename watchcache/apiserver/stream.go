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
	"github.com/tributary-go/tributary/store"
	"github.com/tributary-go/tributary/watchcache"
)

// writePatience is how long a client may take to accept a batch of events before its watch ends.
const writePatience = 30 * time.Second

// serveWatch streams events until the client goes, the timeout is over, or the server closes. A
// version that is too old, and what goes wrong later, comes as an ERROR event inside the stream, as
// from the API server.
func (e *resourceEndpoint[T]) serveWatch(c call, r watchcache.Request) error {
	if c.format.contentType(true) == "" {
		return notAcceptable(strings.Join([]string{jsonType, protobufEncoding{}.contentType(true)}, ", "))
	}
	r.TimeoutSeconds = watchSeconds(r.TimeoutSeconds)
	w, err := e.cache.Watcher(r)
	if err != nil && !apierrors.IsResourceExpired(err) {
		return err
	}
	if err == nil {
		defer w.Close()
	}
	stream := &eventStream[T]{call: c, codec: e.codec, control: http.NewResponseController(c.ResponseWriter), key: c.format}
	if isWebSocket(c.request) {
		c.overWebSocket(func(ctx context.Context, socket io.Writer) {
			stream.socket = socket
			stream.run(ctx, w, err)
		})
		return nil
	}
	c.Header().Set("Content-Type", c.format.contentType(true))
	c.Header().Set("Cache-Control", "no-cache, private")
	c.WriteHeader(http.StatusOK)
	if stream.flush() == nil { // the client learns that the watch stands before there is any event
		stream.run(c.request.Context(), w, err)
	}
	return nil
}

// eventStream writes frames to one client.
type eventStream[T store.Object] struct {
	call
	codec   codec[T]
	control *http.ResponseController
	socket  io.Writer // not nil: each frame is a message
	key     any       // the format, boxed once
}

// run sends what the watcher sees until either has an end. A watcher that could not begin has an
// error.
func (s *eventStream[T]) run(ctx context.Context, w *watchcache.Watcher[T], err error) {
	var sent error
	for err == nil && sent == nil {
		var events []watchcache.Delivery[T]
		events, err = w.Next(ctx)
		if err == nil && len(events) == 0 {
			return
		}
		sent = s.send(events)
	}
	if sent == nil {
		s.fail(err)
	}
}

// send writes a batch and flushes it. An error means that the client has gone, is too slow, or that
// an object cannot be encoded: the stream is over.
func (s *eventStream[T]) send(events []watchcache.Delivery[T]) error {
	// Not every ResponseWriter has deadlines; without one, a dead client costs a goroutine until
	// TCP notices. The deadline is for this batch: left standing, it would end an idle stream of
	// HTTP/2.
	_ = s.control.SetWriteDeadline(time.Now().Add(writePatience))
	defer s.control.SetWriteDeadline(time.Time{})
	encode := func(e listwatch.Event[T]) ([]byte, error) { return s.codec.event(s.format, e) }
	burst := bursts.Get().(*bufio.Writer)
	burst.Reset(s.ResponseWriter)
	defer func() {
		burst.Reset(nil)
		bursts.Put(burst)
	}()
	for _, e := range events {
		frame, err := e.Encoded(s.key, encode)
		if err != nil {
			_ = burst.Flush() // the stream ends here in any case
			s.fail(err)
			return err
		}
		if s.format.view == asTable && !s.format.headless {
			s.format.headless = true
			s.key = s.format
		}
		if s.socket != nil {
			_, err = s.socket.Write(frame)
		} else {
			_, err = burst.Write(frame)
		}
		if err != nil {
			return err
		}
	}
	if err := burst.Flush(); err != nil {
		return err
	}
	return s.flush()
}

// bursts are buffers in which the events of a batch become one write, as far as they fit.
var bursts = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeBuffer) }}

// fail ends the stream with an ERROR event.
func (s *eventStream[T]) fail(cause error) {
	f := s.format
	doc, err := statusDocument(f, statusOf(cause))
	if err != nil {
		return
	}
	frame, err := f.frame(watch.Error, doc)
	switch { // the stream ends here in any case
	case err != nil:
	case s.socket != nil:
		_, _ = s.socket.Write(frame)
	default:
		_, _ = s.Write(frame)
		_ = s.flush()
	}
}

func (s *eventStream[T]) flush() error {
	if s.socket != nil {
		return nil
	}
	return s.control.Flush()
}
