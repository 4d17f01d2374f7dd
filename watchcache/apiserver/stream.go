package apiserver

import (
	"bufio"
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
	c.Header().Set("Content-Type", c.format.contentType(true))
	c.Header().Set("Cache-Control", "no-cache, private")
	c.WriteHeader(http.StatusOK)
	sent := stream.flush() // the client learns that the watch stands before there is any event
	for err == nil && sent == nil {
		var events []watchcache.Delivery[T]
		events, err = w.Next(c.request.Context())
		if err == nil && len(events) == 0 {
			return nil
		}
		sent = stream.send(events)
	}
	if sent == nil {
		stream.fail(err)
	}
	return nil
}

// eventStream writes frames to one client.
type eventStream[T store.Object] struct {
	call
	codec   codec[T]
	control *http.ResponseController
	key     any // the format, boxed once
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
		if _, err := burst.Write(frame); err != nil {
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
	if frame, err := f.frame(watch.Error, doc); err == nil {
		_, _ = s.Write(frame) // the stream ends here in any case
		_ = s.flush()
	}
}

func (s *eventStream[T]) flush() error { return s.control.Flush() }
